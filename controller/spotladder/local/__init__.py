"""The local runner: real Ray nodes as processes of this machine, without a cluster."""
