"""Metrics as TensorBoard scalars in `<run>/tensorboard/`."""

import time
from collections.abc import Mapping

from latih.tracking.logger import RunInfo, loggers, missing


@loggers.register("tensorboard")
class TensorBoardLogger:
    """Writes event files through the `tensorboard` package itself, so that torch is not needed.

    A resumed run's file begins with a session mark, at which TensorBoard drops the steps that were cut.
    """

    def __init__(self, info: RunInfo) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise missing("tensorboard") from None
        self._event, self._summary = event_pb2, summary_pb2
        self._writer = EventFileWriter(str(info.folder / "tensorboard"))
        if info.resumed is not None:
            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._writer.add_event(event_pb2.Event(wall_time=time.time(), step=info.resumed + 1, session_log=start))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Raises OSError."""
        values = [self._summary.Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
        summary = self._summary.Summary(value=values)
        self._writer.add_event(self._event.Event(wall_time=time.time(), step=step, summary=summary))
        self._writer.flush()

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()
