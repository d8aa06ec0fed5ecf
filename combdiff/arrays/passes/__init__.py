"""Plans to better plans: order, reuse, scale, packing, loops, memory, in place."""
