"""Terms: types, nodes, their constructors in normal form, and walks over them."""
