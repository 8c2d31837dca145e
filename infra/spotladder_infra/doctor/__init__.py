"""`spotladder infra doctor`: whether this machine and the accounts have what a fleet needs. Nothing is changed.

Each module checks one place (this machine, a cloud, a cluster) and yields a `Result` for each check. A check that is
not possible is skipped, with the reason.
"""
