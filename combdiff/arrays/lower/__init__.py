"""Terms to plans."""
