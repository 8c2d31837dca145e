"""The parts of the stacks, by concern. Each function adds resources to a stack and returns the attributes that other
parts need. Resources are direct children of the stack, so their Terraform addresses are short, have no hash and do not
change when code is moved.
"""
