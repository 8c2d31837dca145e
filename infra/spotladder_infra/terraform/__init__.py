"""Runs Terraform, or OpenTofu, on the stack of one cluster. `tool` finds the program, `process` runs it, `events`
parses its output, `failures` formats its errors as one line each, `imports` has the ids of resources that already
exist, `stack` has the commands, `providers` has the versions of providers, `changes` summarizes a plan for users,
`applied` prepares the stacks of a fleet and stores their outputs.
"""

from spotladder_infra.terraform.applied import outputs

__all__ = ["outputs"]
