"""Commands that take a run on this machine as they take a job of a cluster."""
