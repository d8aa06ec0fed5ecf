"""Laws of simplification for values that are defined in a certain way: deviations, linear maps, stationary points."""
