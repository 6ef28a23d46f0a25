"""What the policy sees and touches: its workspace, and commands in it."""

from latih.data.packages import read_sdist, test_kit
from latih.envs.repo_repair.expectations import function_of, show_test
from latih.rewards.repo import RepoTask, broken, pick
from latih.sandbox import Limits, Result, Workspace, run

LIMITS = Limits(wall=10.0, cpu=10.0, memory=1024, disk=32, output=1 << 16)
"""Of one command."""


def visible_files(task: RepoTask) -> dict[str, bytes]:
    """The broken sources, the one test that is shown, and what it may need. No history, and no other test.

    Raises LatihError where the sdist cannot be had.
    """
    origin = read_sdist(task.tests)
    path, _, function = function_of(task.shown).partition("::")
    beside = [
        name for name in task.support if not name.endswith(".py") or name.endswith(("conftest.py", "__init__.py"))
    ]
    test, _ = show_test(origin[path].decode(), function)
    return pick(origin, [*task.fixed, *beside]) | broken(task) | {path: test.encode()}


def command(workspace: Workspace, roots: list[str], words: str, limits: Limits = LIMITS) -> Result:
    """Run a line of shell in the workspace, with the project and pytest importable; stderr goes where stdout goes."""
    kit = test_kit()
    path = ":".join([str(kit), *(f"$PWD/{root}" for root in roots)])
    before = f'exec 2>&1 </dev/null\nexport PYTHONPATH="{path}" PYTEST_DISABLE_PLUGIN_AUTOLOAD=1\n'
    return run(["sh", "-c", before + words], workspace=workspace, limits=limits, read_only=[kit])


def shown_command(task: RepoTask) -> str:
    """The command that runs the shown test."""
    return f"python -m pytest -q --tb=short -p no:cacheprovider {task.shown.partition('::')[0]}"
