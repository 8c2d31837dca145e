"""The reports of the operator: Events, metrics, the status of CapacityTiers, health, log lines."""
