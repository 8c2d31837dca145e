"""Reconciling one TieredJob: load, decide, apply, persist."""
