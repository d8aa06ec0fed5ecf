"""Constructs that take indices or steps of their own: reductions, loops."""
