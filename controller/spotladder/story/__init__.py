"""What happened to a job, told to people: its timeline, the live view, the report. The same wherever the job ran."""
