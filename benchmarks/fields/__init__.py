"""Objectives of many fields, each with the gradient that an expert would write: `python -m benchmarks.fields`."""
