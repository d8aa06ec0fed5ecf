"""Pictures of contractions: tensors as nodes, indices as edges, free indices as legs that end in nothing."""
