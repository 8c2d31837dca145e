"""Estimates the cost of a job with the formulas of the core."""
