"""How array libraries are written, a table each."""

BACKENDS = ("numpy", "cupy", "jax", "torch", "dask")
