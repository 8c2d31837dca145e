"""Offers and prices of the clouds: small tables, each with the date on which it was read."""
