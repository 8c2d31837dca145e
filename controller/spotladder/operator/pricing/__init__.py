"""The prices of CapacityTiers, and where they come from."""
