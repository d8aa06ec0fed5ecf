"""Gathers and scatters by arrays of integers: where they stand beside products, and as sparse products."""
