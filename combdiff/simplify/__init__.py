"""From a raw pullback to a short result: contraction, like terms, the choice of form."""
