"""The Kubernetes operator: every reconcile of a TieredJob is load → decide → apply, and `core` decides."""
