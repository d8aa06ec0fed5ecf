"""Integrands that jump: where they do, by how much, and how the place moves."""
