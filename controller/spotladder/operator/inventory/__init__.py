"""What exists in which cluster: the caches of each cluster, and whether it answers."""
