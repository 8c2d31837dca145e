"""A third kind of workload, in which an attempt is a Job of `batch/v1`. It shows what a new kind must implement."""
