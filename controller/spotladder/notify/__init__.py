"""`spotladder notify`: tells people and programs what happens to jobs."""
