"""One Terraform stack for each cluster. A cloud's module imports the bindings of that cloud only."""
