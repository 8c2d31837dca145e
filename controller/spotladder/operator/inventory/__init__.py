"""The objects in each cluster: the caches of the clusters, and whether they answer."""
