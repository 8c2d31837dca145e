"""What a job remembers of its failures and of the availability of its tiers, in a bounded form."""
