"""Loops over blocks of an index: those that pay, those that a limit of memory asks for, checkpoints of recurrences."""
