"""An hour of losses, outages and attacks on real nodes: `make test-soak` (see `__main__`)."""
