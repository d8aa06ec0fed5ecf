"""How array libraries are written, a table each."""
