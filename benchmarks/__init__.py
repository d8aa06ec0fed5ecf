"""Derivation times (`derive.py`, `scale.py`) and, as `python -m benchmarks`, emitted code beside its peers."""
