"""Deliberate faults, one at a time, and whether a test notices: `python -m tests.mutants`."""
