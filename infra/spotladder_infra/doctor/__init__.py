"""`spotladder infra doctor`: whether this machine and the accounts have what a fleet needs. Nothing is changed.

Each module has a table of checks for one place: this machine, a cloud, a cluster. `result` runs the checks.
"""
