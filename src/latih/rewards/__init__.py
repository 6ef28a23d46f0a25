"""Rewards: verifiers of what a policy answered."""
