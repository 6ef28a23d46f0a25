"""Who samples: the embedded engine, on the learner's own weights."""

from latih.inference.engine import Engine
from latih.inference.settings import EngineSettings

__all__ = ["Engine", "EngineSettings"]
