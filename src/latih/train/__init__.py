"""Training: from groups of trajectories to a better policy, and the loop around it."""
