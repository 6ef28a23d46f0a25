"""Graders of the usual kind, which trust what they should not. For comparison only: nothing is paid by them."""
