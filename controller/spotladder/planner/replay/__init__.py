"""Runs a recorded job again, with other policies and settings, on the capacity that the job observed."""
