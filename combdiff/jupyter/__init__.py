"""What a notebook shows and takes: formulas, tables, the stages of a derivation, and cells of the language."""
