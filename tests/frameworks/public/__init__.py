"""Public examples of frameworks, rewritten small: models from configurations, data from a random generator. Lines that
differ from the example because of spotladder end in `# changed`; the import is not counted."""
