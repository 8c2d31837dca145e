"""`spotladder web`: a read-only page over the jobs of this machine and of a cluster."""
