"""What users write: TieredJob, CapacityTier and the world file, read from YAML, checked, and resolved for the core."""
