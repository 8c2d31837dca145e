"""Where jobs are, followed: this machine and clusters. For the page and for notifications."""
