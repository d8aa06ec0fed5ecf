"""The language: text to terms, and terms to text."""
