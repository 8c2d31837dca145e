"""The checkpoint stores: commit logs and outputs, and the allowed addresses and credentials."""
