"""Estimates the cost of a job, proposes settings, and replays recorded jobs."""
