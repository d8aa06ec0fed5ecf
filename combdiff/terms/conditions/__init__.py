"""Conditions: what stands under them, and what follows from them."""
