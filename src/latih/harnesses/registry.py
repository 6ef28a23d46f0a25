"""The names under which harnesses are known."""

from collections.abc import Callable

from latih.core import Harness, Registry

harnesses = Registry[Callable[..., Harness]]("harness")
