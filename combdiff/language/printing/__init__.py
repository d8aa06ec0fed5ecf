"""Terms to text that reads back."""
