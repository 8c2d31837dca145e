"""What the operator reports: Events, metrics, the status of CapacityTiers, health, log lines."""
