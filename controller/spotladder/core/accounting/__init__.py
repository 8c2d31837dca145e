"""What a job has paid, saves and may cost. Money is in USD."""
