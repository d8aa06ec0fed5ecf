"""The order of contractions: Σ over a product of many arrays as products of two, none of which is made twice."""
