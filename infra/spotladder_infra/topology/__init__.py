"""The fleet file: its model, its checks, and how it is read."""
