"""Plans to better plans: order, reuse, scale, translations, outer products, distances, loops, memory, in place."""
