"""Canonical names under symmetry: what is equal up to names, order and declared symmetries has one form."""
