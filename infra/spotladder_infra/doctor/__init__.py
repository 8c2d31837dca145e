"""`spotladder infra doctor`: whether this machine and the accounts have what a fleet needs. Nothing is changed.

One module per place that is looked at; each yields a `Result` for each check. A check that cannot be done is skipped,
with the reason.
"""
