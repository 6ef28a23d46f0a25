"""How repairs are often graded: the tests are copied into the policy's own folder, and pytest's word is taken."""

import shlex
from collections.abc import Mapping, Sequence

from latih.data.packages import test_kit
from latih.sandbox import Limits, Workspace, run

COMMAND = 'PYTHONPATH="{path}" PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q {what}'


def run_in_place(
    workspace: Workspace,
    tests: Mapping[str, bytes],
    limits: Limits,
    roots: Sequence[str] = (".",),
    what: Sequence[str] = ("tests",),
) -> dict[str, bool]:
    """Whether pytest leaves with 0 (`exit code`), and whether it `printed` that tests passed and none failed.

    `own tests`: the exit code with the tests as the policy left them. `roots` are the folders for `sys.path`, `what` is
    given to pytest. Raises SandboxError, LatihError without a kit.
    """
    kit = test_kit()
    path = ":".join([str(kit), *(f"$PWD/{root}" for root in roots)])
    shell = ["sh", "-c", COMMAND.format(path=path, what=shlex.join(what))]
    own = run(shell, workspace=workspace, limits=limits, read_only=[kit])
    result = run(shell, files=tests, workspace=workspace, limits=limits, read_only=[kit])  # also into a full workspace
    said = result.stdout.decode(errors="replace")
    return {
        "exit code": result.code == 0,
        "printed": " passed" in said and "failed" not in said and "error" not in said.lower(),
        "own tests": own.code == 0,
    }
