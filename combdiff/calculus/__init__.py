"""Differentiation: abstraction elimination, the pullback rules, reverse mode, and which derivative is meant."""
