"""Kubernetes clusters: how each is reached, its client, and what a controller needs: caches, queue, election."""
