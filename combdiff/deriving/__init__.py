"""Deriving: the text of a program to its derivation, and to what code may compute of it."""
