"""What a program may use, and what came of it."""

from dataclasses import dataclass

from pydantic import ConfigDict, Field

from latih.core.schema import Record


class Limits(Record):
    """What one run may use. docs/sandbox.md says how each is enforced."""

    model_config = ConfigDict(frozen=True)

    wall: float = Field(10.0, gt=0)
    """Seconds from start to end, measured by the parent; then everything inside is killed."""
    cpu: float = Field(10.0, gt=0)
    """Seconds of CPU time of one process (rounded up to whole ones)."""
    memory: int = Field(512, gt=0)
    """MiB of private writable memory of one process, and of resident memory of all of them together."""
    processes: int = Field(32, gt=0)
    """Processes and threads at once."""
    output: int = Field(1 << 20, ge=0)
    """Bytes kept of each of stdout, stderr and channel. More is read and thrown away, and `Result.cut` says so."""
    disk: int = Field(64, gt=0)
    """MiB of the working directory, and as much again of /tmp."""
    open_files: int = Field(256, ge=16)
    """File descriptors of one process."""

    def within(self, wall: float, cpu: float | None = None) -> "Limits":
        """The same but for the time: seconds from start to end, and as many of CPU time unless `cpu` says others."""
        return self.model_copy(update={"wall": wall, "cpu": wall if cpu is None else cpu})


@dataclass(frozen=True)
class Result:
    """What a program did. None of it proves anything: the program wrote it."""

    code: int | None
    """Exit code, negative for a signal; None where the wall time ran out."""
    stdout: bytes
    stderr: bytes
    channel: bytes
    """What was written to the file descriptor that the variable LATIH_CHANNEL names."""
    timed_out: bool
    """The wall time ran out."""
    cut: bool
    """Output was longer than `Limits.output`, or a workspace got more than it keeps, and the rest is lost."""
    seconds: float
    """Wall time until the program had ended, starting the sandbox included."""
