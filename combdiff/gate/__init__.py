"""The gate: both sides of a simplification on numbers of a finite field; a difference is an error."""
