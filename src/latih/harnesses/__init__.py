"""Harnesses: who plays an episode. A new one is one file and its registration."""

from latih.core.plugins import import_all
from latih.harnesses.chat_loop import ChatLoop
from latih.harnesses.registry import HarnessSettings, harnesses

__all__ = ["ChatLoop", "HarnessSettings", "harnesses"]

import_all(__name__)  # each registers itself
