"""Laws of functions that the constructors of terms use, one file a family."""
