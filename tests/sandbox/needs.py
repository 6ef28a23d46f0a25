"""The mark of tests that need bubblewrap."""

import pytest

from latih.sandbox import SandboxError, backend, run


def _missing() -> str:
    try:
        run("pass")
    except SandboxError as exc:
        return str(exc)
    return "" if backend().name == "bubblewrap" else "LATIH_SANDBOX=unsafe"


_why = _missing()
needs_bubblewrap = pytest.mark.skipif(bool(_why), reason=_why or "never")
