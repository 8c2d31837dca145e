"""The text that a program printed: what of it explains its end, and what of it may be kept. Standard library only."""
