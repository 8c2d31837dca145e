"""Parts of a GKE cluster."""
