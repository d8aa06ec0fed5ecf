"""Results to plans, plans to code; results to LaTeX and matrix form."""
