"""Explains in words what the simplifier did, from the terms before and after each stage, on request."""
