"""A third kind of workload: an attempt is one Job of batch/v1. It shows what a new kind has to bring."""
