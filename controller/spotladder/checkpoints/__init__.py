"""The commit log of a job's checkpoints: it fences old writers, records commits, and selects the commit to resume."""
