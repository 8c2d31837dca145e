"""What an attempt is made of on Kubernetes, and how its state is read. Pure: no client, no clock, no IO."""
