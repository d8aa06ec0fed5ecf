"""Results to LaTeX and SymPy."""
