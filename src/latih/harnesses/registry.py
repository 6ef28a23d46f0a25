"""The names under which harnesses are known, and the settings that choose one."""

from collections.abc import Callable
from typing import Any

from latih.core import Harness, Registry
from latih.core.plugins import build
from latih.core.schema import Record

harnesses = Registry[Callable[..., Harness]]("harness")


class HarnessSettings(Record):
    """Who plays the episodes, and how much of the history the policy is shown."""

    id: str = "chat_loop"
    """A registered harness; a user's own is registered by a module that `plugins` names."""
    args: dict[str, Any] = {}
    """The dials of the harness; of `chat_loop`: `window`."""

    def make(self) -> Harness:
        """The harness. Raises ConfigError: an unknown one with the nearest, unknown or wrong dials."""
        return build(self.id, harnesses.get(self.id), self.args)
