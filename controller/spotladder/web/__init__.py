"""`spotladder web`: a read-only page of the jobs of this machine and of a cluster."""

HOST = "127.0.0.1"

PORT = 8790
"""The port of the page, unless another one is chosen."""
