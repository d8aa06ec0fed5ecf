"""Definitions of a program before it is differentiated: which there are, what they are called, what shares one."""
