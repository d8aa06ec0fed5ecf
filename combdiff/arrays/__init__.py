"""Plans: what is computed, as steps over whole arrays."""
