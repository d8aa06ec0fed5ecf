"""Text to surface tree."""
