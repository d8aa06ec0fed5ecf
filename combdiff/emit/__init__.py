"""Plans to source text."""
