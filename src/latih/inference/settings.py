"""Settings of the embedded engine."""

from pydantic import Field

from latih.core.schema import Record


class EngineSettings(Record):
    """How much the embedded engine may hold and do at a time."""

    kv_cache_gb: float = Field(2.0, gt=0)
    """Memory for cached keys and values, in GiB, of each policy that plays: one context at least. Calls that it has no
    room for wait. It is checked before any weights are read, once the model's folder is there; a model of the hub is
    fetched first."""
    context_length: int | None = Field(None, ge=1)
    """The most tokens of a prompt and its reply together; None takes the model's own."""
    prefill_tokens: int = Field(2048, ge=1)
    """The most prompt tokens computed in one step of the engine."""
