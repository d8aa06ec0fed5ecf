"""Functions of their own in emitted code: equations that are solved, the steps of loops."""
