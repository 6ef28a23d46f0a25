"""What holds for all tests."""

import signal

import pytest
from hypothesis import is_hypothesis_test, settings

from tests.soak import LONGER, PROFILE, soaking

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As where a script runs the tests in the background; they and the processes that they start are to hear of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(PROFILE, max_examples=settings().max_examples * LONGER)


@pytest.hookimpl(tryfirst=True)  # before marks select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With more examples each property test is its own long form."""
    if soaking():
        for item in items:
            if is_hypothesis_test(getattr(item, "obj", None)):
                item.add_marker(pytest.mark.soak)
