"""Environments: worlds over messages, each one file of this package or of the user's."""

from latih.envs.base import MessageEnv
from latih.envs.registry import EnvInfo, EnvSettings, describe, find, make, register, register_builtin
from latih.envs.spaces import MessageSpace, message_of, messages_of, text_of

__all__ = [
    "EnvInfo",
    "EnvSettings",
    "MessageEnv",
    "MessageSpace",
    "describe",
    "find",
    "make",
    "message_of",
    "messages_of",
    "register",
    "text_of",
]

register_builtin()
