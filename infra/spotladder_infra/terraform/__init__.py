"""Runs Terraform, or OpenTofu, on the stack of one cluster.

`tool` finds the program, `process` runs it, `events` reads what it prints, `failures` turns its errors into one line,
`stack` has the commands, `adopt` takes over what an interrupted apply created (`existing_*` find it in a cloud),
`providers` knows their versions, `changes` groups a plan for people,
`applied` prepares the stacks of a fleet and keeps their outputs.
"""

from spotladder_infra.terraform.applied import outputs

__all__ = ["outputs"]
