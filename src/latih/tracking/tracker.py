"""The tracker: one call per step, to several loggers at once."""

from collections.abc import Callable, Mapping

from latih.core import LatihError, first_line
from latih.core.files import is_full
from latih.tracking.logger import Logger, RunInfo, find_loggers


class Tracker:
    """Sends each step's metrics to every logger that the settings name.

    The numbers come aggregated from the code that knows what they mean; nothing is guessed from a name here.

    A logger that cannot start is an error, since the user asked for it. One that fails later is reported through
    `warn` and retired, for a lost dashboard must not cost a run; only `jsonl` is not forgiven, because resuming and
    retention rest on it.
    """

    def __init__(self, info: RunInfo, warn: Callable[[str], None]) -> None:
        """Raises ConfigError for an unknown logger or a missing package, LatihError where a file cannot be opened."""
        self._warn = warn
        self._loggers: dict[str, Logger] = {}
        makers = find_loggers(info.settings)
        try:
            for name, make in makers.items():
                self._loggers[name] = make(info)
        except Exception as exc:
            self.close()
            if isinstance(exc, LatihError):
                raise
            told = first_line(exc, kind=True)
            raise LatihError(f"logger {name!r} cannot start: {told}; leave it out of tracking.loggers") from exc

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        """Record a step; `axis` as in `Logger.log`. Raises LatihError where metrics.jsonl cannot be written."""
        for name, logger in list(self._loggers.items()):
            try:
                logger.log(step, metrics, axis)
            except Exception as exc:
                if name == "jsonl":
                    full = "the disk is full: free some space and resume"
                    mend = full if is_full(exc) else first_line(exc, kind=True)
                    raise LatihError(f"cannot write metrics.jsonl at step {step}: {mend}") from exc
                self._retire(name, exc)

    def close(self) -> None:
        """Close every logger; one that fails in closing is reported."""
        for name, logger in list(self._loggers.items()):
            try:
                logger.close()
            except Exception as exc:
                self._warn(f"logger {name!r} failed in closing: {first_line(exc, kind=True)}")
        self._loggers.clear()

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _retire(self, name: str, exc: Exception) -> None:
        self._warn(f"logger {name!r} failed and gets no more metrics: {first_line(exc, kind=True)}")
        logger = self._loggers.pop(name)
        try:
            logger.close()
        except Exception as again:
            self._warn(f"logger {name!r} failed in closing: {first_line(again, kind=True)}")
