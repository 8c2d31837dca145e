"""The commit log beside the checkpoints: who may write, what is committed, what to resume from."""
