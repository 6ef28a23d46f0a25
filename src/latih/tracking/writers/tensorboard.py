"""Metrics as TensorBoard scalars in `<run>/tensorboard/`."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from latih.tracking.logger import RunInfo, loggers, missing


@loggers.register("tensorboard")
class TensorBoardLogger:
    """Writes event files through the `tensorboard` package itself, so that torch is not needed.

    A resumed run's file begins with a session mark, at which TensorBoard drops the steps that were cut. Metrics with an
    axis of their own go to a folder of their own, so that the mark does not reach them.
    """

    def __init__(self, info: RunInfo) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise missing("tensorboard") from None
        self._event, self._summary = event_pb2, summary_pb2
        self._open: Callable[[str], Any] = lambda name: EventFileWriter(str(info.folder / "tensorboard" / name))
        self._writers = {"": self._open("")}
        """By the folder that they write to."""
        if info.resumed is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._writers[""].add_event(
                event_pb2.Event(wall_time=time.time(), step=info.resumed + 1, session_log=start)
            )

    def log(self, step: int, metrics: Mapping[str, float], axis: str | None = None) -> None:
        """Raises OSError."""
        folder = ""
        if axis is not None:
            folder, step = axis.rpartition("/")[0], int(metrics[axis])
        if folder not in self._writers:
            self._writers[folder] = self._open(folder)
        writer = self._writers[folder]
        values = [self._summary.Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        summary = self._summary.Summary(value=values)
        writer.add_event(self._event.Event(wall_time=time.time(), step=step, summary=summary))
        writer.flush()

    def close(self) -> None:
        """Flush and close the files."""
        for writer in self._writers.values():
            writer.close()
