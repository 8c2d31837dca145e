"""How Kubernetes clusters are reached: connections, one client for each, and the registry that names them."""
