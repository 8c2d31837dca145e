"""The decision core: pure functions over frozen records. Standard library only; no IO, no clock, no randomness."""
