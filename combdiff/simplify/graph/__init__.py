"""The e-graph that chooses: classes of closed tensors whose slots are renamed, and what is read out of it."""
