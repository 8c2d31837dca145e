"""The rules of the life cycle, one module for each kind of event. `table` has the rules of each stage."""
