"""What the clouds offer and charge: small tables, each with the date on which it was read."""
