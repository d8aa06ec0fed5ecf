"""Laws of places i + 1: sums round a ring are moved, what stands at several places of a range or ring has one name."""
