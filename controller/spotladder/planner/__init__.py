"""What a job will cost before anything is bought, from the same core as everything else."""
