"""The output of programs: finds the error that ended a program, and removes secrets. Standard library only."""
