"""latih trains language-model agents by reinforcement learning in environments with verifiable rewards."""

__version__ = "0.1.0"
