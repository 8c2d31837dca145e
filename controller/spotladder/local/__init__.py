"""The runner on this machine: real Ray nodes as processes, no cluster needed."""
