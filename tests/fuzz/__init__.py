"""Random programs against an evaluation that shares no code with the package.

`python -m tests.fuzz --minutes 10 --seed 1` writes programs, asks combdiff for their derivatives in many ways, and
compares each answer with finite differences and exact tangents of an interpreter of its own.
"""
