"""Commands that accept a run on this machine as well as a job in a cluster."""
