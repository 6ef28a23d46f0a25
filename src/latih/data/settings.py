"""Settings of data."""

from latih.core.schema import Record


class DataSettings(Record):
    """Data sets whose rows are the tasks. Without any, the environment makes up its own."""

    train: str | None = None
    """Rows to train on, and to warm-start on: a `.parquet`, `.jsonl` (or `.ndjson`) or `.json` file, a folder of them,
    a pattern such as `rows/train-*.parquet`, or such a place on the Hugging Face hub (extra `hub`):
    `hf://datasets/openai/gsm8k/main/train-*.parquet`, with `@REVISION` behind the name where it shall be a certain one.
    It needs `data.eval` beside it."""
    eval: str | None = None
    """Held-out rows to evaluate on, named in the same ways. A row that is in `data.train` too is refused."""
    columns: dict[str, str] = {}
    """For files that call a column by another name: the environment's name, and the file's. `{question: problem}`."""
