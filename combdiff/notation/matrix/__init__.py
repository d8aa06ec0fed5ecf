"""Results in matrix form: xᵀ A x."""
