"""Loops: recurrences, and their derivatives."""
