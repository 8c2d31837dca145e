"""Facts that follow from a situation. They decide and change nothing."""
