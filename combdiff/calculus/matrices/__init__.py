"""Jacobians, of complex unknowns by Wirtinger's pair, and what is linear over the real numbers."""
