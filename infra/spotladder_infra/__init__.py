"""Infrastructure stacks of spotladder: clusters, NodePools and the checkpoint bucket."""
