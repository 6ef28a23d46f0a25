"""The base of every record: strict about its keys, cheap to build."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A pydantic model that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid")
