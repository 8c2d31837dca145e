"""The commands that show and change the TieredJobs of a cluster, in the style of kubectl."""
