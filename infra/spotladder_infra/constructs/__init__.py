"""The parts of the stacks, by concern. Each function adds resources to a stack and returns what others need of them.

Resources stand directly in the stack, so their Terraform addresses are short, have no hash and stay when code moves.
"""
