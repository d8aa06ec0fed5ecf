"""The laws of `rules/`, applied by egglog: Σ meets δ, conj moves to the leaves."""
