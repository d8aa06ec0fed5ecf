"""What stands under a condition that cuts a range is computed on what is left of the range."""
