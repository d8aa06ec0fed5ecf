"""The language: syntax, types, terms, their meaning and their printed form."""
