"""Renders attempts as Kubernetes objects and reads their state. Pure: no client, no clock, no IO."""
