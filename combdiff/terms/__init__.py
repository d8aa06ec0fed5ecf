"""Terms: types, nodes, their constructors in normal form, and walks over them."""

# these fill tables that nodes and pickle look up: the functions of numbers, and how nodes are stored
from combdiff.terms import archive, scalars

__all__ = ["archive", "scalars"]
