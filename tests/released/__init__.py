"""What a released version writes, in a folder for each version: in the current one every field has a value.

`UPDATE_GOLDEN=1 pytest tests/released` writes the folder of the current version. Those of earlier versions are never
changed.
"""
