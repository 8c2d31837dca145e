"""Changes of a situation that rules make: each returns the changed situation."""
