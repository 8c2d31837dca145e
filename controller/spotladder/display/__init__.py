"""What users see of a job: its timeline, the live view and the report, the same for local runs and clusters."""
