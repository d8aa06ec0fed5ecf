"""Solvers of emitted source: which one a step calls, how the call is written, and their texts."""
