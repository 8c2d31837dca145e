"""The checkpoint stores: commit logs and outputs, and who may use which address and credentials."""
