"""The workload kind `jobSet`: an attempt is a JobSet, plain scripts without Ray."""
