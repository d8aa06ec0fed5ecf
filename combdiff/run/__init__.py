"""Source text as a function: what it is given is checked, packed and called with."""
