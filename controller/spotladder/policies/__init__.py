"""The installed policies: finds them by name, and loads the fitted model that `adaptive` needs."""
