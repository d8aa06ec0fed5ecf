"""Packed arguments: which rows of a symmetric tensor are kept, and the contractions that read them."""
