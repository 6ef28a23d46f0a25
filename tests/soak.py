"""The long forms of tests, which `make soak` runs and `make test` leaves out."""

from typing import Any

import pytest
from hypothesis import settings

LONGER = 20
"""How many times more examples a property test sees under `make soak`."""
PROFILE = "soak"


def soaking() -> bool:
    """Whether property tests run in their long form: under `--hypothesis-profile soak`."""
    return settings.get_current_profile_name() == PROFILE


def examples(count: int) -> int:
    """The `max_examples` of a property test whose short form sees `count`."""
    return count * LONGER if soaking() else count


def forms(name: str, short: Any, *long: Any) -> pytest.MarkDecorator:
    """Parametrize a test: `name` is `short` as a rule, and each of `long` under `make soak`."""
    return pytest.mark.parametrize(name, [short, *(pytest.param(each, marks=pytest.mark.soak) for each in long)])
