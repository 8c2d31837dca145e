"""Kubernetes clusters: connections, the API client, and the controller's caches, workqueue and leader election."""
