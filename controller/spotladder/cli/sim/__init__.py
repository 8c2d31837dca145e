"""Commands that simulate jobs on recorded capacity."""
