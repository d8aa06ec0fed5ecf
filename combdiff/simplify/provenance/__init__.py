"""What the simplifier did, told in words: found again from the terms before and after, when somebody asks."""
