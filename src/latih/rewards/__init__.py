"""Rewards: verifiers that trust nobody, and the standing catalogue of cheats that all fail against them."""
