"""Surface tree to term: names, types, ranges of indices and declarations are resolved."""
