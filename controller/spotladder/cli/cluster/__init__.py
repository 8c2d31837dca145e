"""The commands that look at, and change, the TieredJobs of a cluster. They are to feel like kubectl's own."""
