"""The Kubernetes operator: every pass over a TieredJob is load → decide → apply, and `core` decides."""
