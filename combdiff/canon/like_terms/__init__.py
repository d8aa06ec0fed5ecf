"""Laws of terms of one sum that are alike in part: they become fewer terms."""
