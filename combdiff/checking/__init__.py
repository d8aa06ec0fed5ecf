"""What `Derivation.check` compares: finite differences, emitted code, what is printed."""
