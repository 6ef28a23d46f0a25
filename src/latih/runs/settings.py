"""Settings of a run's folder."""

from pydantic import Field

from latih.core.schema import Record


class RunSettings(Record):
    """Where a run is kept."""

    folder: str = "runs"
    """The folder that holds all runs."""
    name: str | None = Field(default=None, pattern=r"^[\w.+-]+$")
    """The run's own folder inside it; None makes one of the target, the date and a few random letters."""
