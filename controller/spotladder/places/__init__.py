"""Follows jobs in their places, on this machine and in clusters, for the page and for notifications."""
