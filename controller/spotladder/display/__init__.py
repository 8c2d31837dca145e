"""The display of a job: its timeline, the live view and the report, for local runs and for clusters."""
