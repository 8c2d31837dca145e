"""Why an attempt does not train, whether it hangs, and how its program has ended."""
