"""The laws of the graph: a file each, with the reason why it ends."""
