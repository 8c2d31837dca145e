"""Readers of public trace formats, one file per format."""
