"""Functions as what is differentiated: integrals over intervals, and integration by parts."""
