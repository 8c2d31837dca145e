"""A folder for PYTHONPATH: each Python process of a public example imports `sitecustomize` when it starts."""
