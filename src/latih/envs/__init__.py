"""Environments: worlds over messages, each one file of this package or of the user's."""

from latih.envs.base import MessageEnv
from latih.envs.demonstrations import Demonstration, demonstrate
from latih.envs.registry import EnvInfo, EnvSettings, describe, find, make, register, register_builtin
from latih.envs.seeds import Split, episode_seed
from latih.envs.spaces import MessageSpace, message_of, messages_of, text_of

__all__ = [
    "Demonstration",
    "EnvInfo",
    "EnvSettings",
    "MessageEnv",
    "MessageSpace",
    "Split",
    "demonstrate",
    "describe",
    "episode_seed",
    "find",
    "make",
    "message_of",
    "messages_of",
    "register",
    "text_of",
]

register_builtin()
