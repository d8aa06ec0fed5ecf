"""What terms mean: the oracle, with values, samples and sizes. It shares nothing with what it judges."""
