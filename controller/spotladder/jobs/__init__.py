"""What the commands and the Python client do with the jobs of a cluster."""
