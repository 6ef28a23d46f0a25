"""Errors: what the user did wrong (`LatihError`), and what broke during a rollout (`RolloutError`).

A `LatihError` is one line that says what is wrong and what to do; the command line prints it without a
traceback and exits with code 2. A `RolloutError` names the boundary that a failure crossed, once: it becomes
the `ErrorRecord` of its trajectory and never aborts the others. Code behind a boundary (an env, a tool, a
grader) raises plain Python errors; `boundary` attributes them.
"""

import contextlib
from collections.abc import Iterator


class LatihError(Exception):
    """Something the user can mend. The message is one line: what is wrong and what to do."""

    exit_code = 2


class ConfigError(LatihError):
    """A setting that is unknown, of the wrong type, or at odds with another."""


class ModelError(LatihError):
    """A model that is missing, corrupt, of another family or of another shape than expected."""


class RolloutError(Exception):
    """A failure inside one rollout. `kind` names the boundary that it crossed."""

    kind = "rollout"
    hung = False
    """The call missed its deadline and was abandoned."""


class EnvError(RolloutError):
    """The environment raised, returned nonsense, or hung past its deadline."""

    kind = "env"


class ToolError(RolloutError):
    """A tool broke. (A call with bad arguments is an observation, not an error.)"""

    kind = "tool"


class SamplerError(RolloutError):
    """The sampler failed to answer."""

    kind = "sampler"


class EndpointError(SamplerError):
    """An endpoint refused, hung or answered nonsense. The message says all of it: no traceback helps."""


class ContextFull(RolloutError):
    """The prompt leaves no room in the model's context: a truncation, unless it was the episode's first prompt."""

    kind = "context"


class HarnessError(RolloutError):
    """The code that plays the episode failed."""

    kind = "harness"


class GraderError(RolloutError):
    """The code that computes the reward failed."""

    kind = "grader"


class SandboxError(RolloutError, LatihError):
    """Isolated execution is not to be had here, or broke. Never what the program inside did."""

    kind = "sandbox"


def first_line(exc: BaseException, kind: bool = False) -> str:
    """What an exception says, in one line; the name of its type where it says nothing, and before it with `kind`.

    >>> first_line(ValueError("so\\nand so")), first_line(ValueError("so"), kind=True), first_line(ValueError())
    ('so', 'ValueError: so', 'ValueError')
    """
    name, text = type(exc).__name__, str(exc).strip().partition("\n")[0]
    return f"{name}: {text}" if kind and text else text or name


@contextlib.contextmanager
def boundary(error: type[RolloutError], what: str) -> Iterator[None]:
    """Attribute whatever escapes the block to `error`; an already attributed error passes unchanged."""
    try:
        yield
    except RolloutError:
        raise
    except Exception as exc:
        raise error(f"{what}: {type(exc).__name__}: {exc}") from exc
