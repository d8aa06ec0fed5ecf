"""From a raw pullback to a short result: contraction, canonical names, the choice of form, and its check."""
