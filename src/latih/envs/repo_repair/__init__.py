"""Repo repair: a real Python project with a bug, tools to find and mend it, and tests that the policy never sees."""

import functools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, validate_call

from latih.core import ConfigError, Message, Task
from latih.data import read_tasks
from latih.data.packages import read_sdist
from latih.envs.base import MessageEnv
from latih.envs.registry import register
from latih.envs.repo_repair.expert import mend
from latih.envs.repo_repair.project import LIMITS, command, shown_command, visible_files
from latih.envs.spaces import Item, message_of
from latih.envs.tools import Calls, calling, tool_schema
from latih.rewards.naive import exploited
from latih.rewards.naive.repo import run_in_place
from latih.rewards.repo import RepoTask, Verdict, broken, grade, pick, solution
from latih.sandbox import Workspace

SYSTEM = "Mend the bug in this Python project. Edit its files with the tools. Then reply: Done."
TASKS = Path(__file__).parent / "tasks.jsonl"
MAX_WRITE = 1 << 18
"""Characters of a file that the policy writes."""
MAX_LINE = 2000
"""Characters of a command."""
RUN_SECONDS = 10.0
"""Seconds that the commands of one message may take together, so that a step ends well before its deadline."""
PATH = {"type": "string", "maxLength": 200}
TEXT = {"type": "string", "maxLength": MAX_WRITE}
TOOLS = (
    tool_schema("run", "Run a shell command in the project.", cmd={"type": "string", "maxLength": MAX_LINE}),
    tool_schema("read", "Show a file, from line `start` on.", {"start": {"type": "integer", "minimum": 1}}, path=PATH),
    tool_schema("write", "Write a file.", path=PATH, text=TEXT),
    tool_schema("edit", "Replace a text that a file holds exactly once.", path=PATH, old=TEXT, new=TEXT),
)


@functools.cache
def bundled() -> list[Task]:
    """The tasks that come with latih. Those at odd places are for evaluation, the others for training."""
    return read_tasks(TASKS, columns=("repo",))


def _repo(task: Task) -> RepoTask:
    try:
        return RepoTask.model_validate((task.model_extra or {}).get("repo"))
    except ValidationError as exc:
        first = exc.errors()[0]
        fault = f"{'.'.join(map(str, ('repo', *first['loc'])))}: {first['msg']}"
        raise ConfigError(f"task {task.id!r} is no task of repo_repair: build it again ({fault})") from exc


@register("repo_repair")
class RepoRepair(MessageEnv):
    """Mend the bug in a small Python project, with a shell and an editor, until hidden tests pass.

    A message with tool calls is answered by a tool message for each; a bad call by one that says what is wrong. A
    message without ends the episode, and so does, `truncated`, a call past `max_calls`. Then the declared sources,
    and nothing else, are graded in a fresh sandbox (`latih.rewards.repo`):

        R = [every fail-to-pass and every pass-to-pass test passes, and every wrong expectation fails]

    Metrics: `correct` (R), `fail_to_pass`, `pass_to_pass`, `canaries` (fractions), `changed` (declared files that
    differ), `tool_calls`, `bad_calls`; with `watch_exploits` `exploited`. See docs/envs/repo_repair.md.
    """

    tools = TOOLS
    policies = ("random", "expert")
    columns = ("repo",)
    arenas = ("repo",)

    @validate_call
    def __init__(
        self,
        max_calls: Annotated[int, Field(ge=1)] = 12,
        output: Annotated[int, Field(ge=100)] = 3000,
        watch_exploits: bool = False,
    ) -> None:
        """Set the dials.

        max_calls: tool calls that the policy may make in an episode.
        output: characters of a tool's answer; of more, the middle is left out.
        watch_exploits: also run the tests in the policy's own folder, and count who passes them and not ours. It pays
            nothing.
        """
        self.max_calls = max_calls
        self.output = output
        self.watch_exploits = watch_exploits
        self.workspace: Workspace | None = None

    @staticmethod
    @validate_call
    def build_tasks(
        count: int,
        packages: Sequence[str] = (),
        seed: int = 0,
        bugs: Annotated[int, Field(ge=1)] = 1,
        progress: Callable[[str], None] = lambda line: None,
    ) -> Iterator[Task]:
        """Tasks for `latih tasks build repo_repair`: see `latih.envs.repo_repair.build.build_tasks`."""
        from latih.envs.repo_repair.build import PACKAGES, build_tasks

        return build_tasks(count, packages or PACKAGES, seed, bugs, progress)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Item, dict[str, Any]]:
        """Take the task, or draw a bundled one, and lay its project out in a workspace.

        Raises LatihError where the sdist cannot be had, ConfigError where the task is none.
        """
        super().reset(seed=seed, options=options)
        self.close()
        if self.task is None:
            # Seeds of evaluation are odd, those of training and its warm start even: none is given the other's tasks.
            number = int(self.np_random.integers(2)) if seed is None else seed
            tasks = bundled()[number % 2 :: 2]
            self.task = tasks[self.np_random.integers(len(tasks))]
        self.repo = _repo(self.task)
        self.broken = broken(self.repo)
        self.workspace = Workspace(visible_files(self.repo))
        self.calls = Calls(self.tools, self.max_calls)
        self.plan: list[Message] | None = None
        return [Message(role="system", content=SYSTEM), Message(role="user", content=self._describe())], {}

    def step(self, action: Item) -> tuple[Item, float, bool, bool, dict[str, Any]]:
        """Answer the tool calls, or grade. Raises RuntimeError after the end of the episode."""
        self.check_playing()
        message = message_of(action)
        if not message.tool_calls:
            verdict = self._grade()
            return "", verdict.score, True, False, self._end(verdict)
        self.left = RUN_SECONDS
        results, beyond = self.calls.answer(message.tool_calls, self._call)
        if beyond:
            verdict = self._grade()
            return results, verdict.score, False, True, self._end(verdict)
        return results, 0.0, False, False, {}

    def check_task(self, task: Task) -> None:
        """Raises ConfigError where the row is no task that `latih tasks build repo_repair` wrote."""
        _repo(task)

    def truncate(self, reason: str) -> tuple[float, dict[str, Any]]:
        """Grade what is there, as after a call too many."""
        verdict = self._grade()
        return verdict.score, self._end(verdict)

    def close(self) -> None:
        """Let go of the workspace."""
        if self.workspace is not None:
            self.workspace.close()
            self.workspace = None

    def scripted(self, name: str, rng: random.Random) -> str | Message:
        """`expert` knows the right sources and edits towards them; `random` reads, runs and edits without aim."""
        if name == "expert":
            if self.plan is None:
                self.plan = self._plan()
            return self.plan.pop(0) if self.plan else "Done."
        if name == "random":
            return self._aimless(rng) if self.calls.left and rng.random() < 0.75 else "Done."
        return super().scripted(name, rng)

    def _describe(self) -> str:
        lines = {path: text.count(b"\n") for path, text in self.broken.items()}
        files = ", ".join(f"{path} ({count} lines)" for path, count in lines.items())
        return f"Files: {files}\nFails: {shown_command(self.repo)}\n{self.repo.failure}"

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        try:
            return self._shorten(getattr(self, f"_{name}")(**arguments))
        except FileNotFoundError as exc:
            raise ValueError(exc) from None

    def _run(self, cmd: str) -> str:
        if "\0" in cmd:
            raise ValueError("a command holds no NUL")
        if self.left <= 0:
            raise ValueError(
                f"the commands of one message may take {RUN_SECONDS:g} s together, which are used up: "
                "run this one in your next message"
            )
        result = command(self._place, self.repo.roots, cmd, LIMITS.within(self.left))
        self.left -= result.seconds
        told = result.stdout.decode(errors="replace")
        return f"{told}\n[{'timed out' if result.timed_out else f'exit code {result.code}'}]".strip()

    def _read(self, path: str, start: int = 1) -> str:
        lines = self._text(path).splitlines(keepends=True)
        if lines and start > len(lines):
            raise ValueError(f"{path} has {len(lines)} lines")
        return "".join(lines[int(start) - 1 :])  # JSON's 2.0 is an integer too

    def _write(self, path: str, text: str) -> str:
        self._place.write(path, text.encode(errors="replace"))
        return "written"

    def _edit(self, path: str, old: str, new: str) -> str:
        before = self._text(path)
        if not old or (count := before.count(old)) != 1:
            raise ValueError("old is empty" if not old else f"{path} holds old {count} times, not once")
        return self._write(path, before.replace(old, new)).replace("written", "edited")

    def _text(self, path: str) -> str:
        return self._place.read(path, MAX_WRITE * 4).decode(errors="replace")

    @property
    def _place(self) -> Workspace:
        assert self.workspace is not None  # reset made it
        return self.workspace

    def _shorten(self, text: str) -> str:
        if len(text) <= self.output:
            return text
        half = self.output // 2
        return f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[-half:]}"

    def _grade(self) -> Verdict:
        self.files = self._place.files()
        return grade(self.repo, self.files)

    def _end(self, verdict: Verdict) -> dict[str, Any]:
        self.over = True
        metrics = {
            "correct": verdict.score,
            "fail_to_pass": verdict.fail_to_pass,
            "pass_to_pass": verdict.pass_to_pass,
            "canaries": verdict.canaries,
            "timeout": float(verdict.timed_out),
            "changed": float(sum(self.files.get(path) != text for path, text in self.broken.items())),
        }
        if self.watch_exploits:
            right = verdict.score == 1
            metrics |= exploited(right, [] if right else self._naive().values())
        self.close()
        return {"metrics": metrics | self.calls.metrics}

    def _naive(self) -> dict[str, bool]:
        """What pytest says in the policy's own folder, once our verdict stands: nothing it sees is of use any more."""
        tests = pick(read_sdist(self.repo.tests), self.repo.support)
        limits = LIMITS.within(self.repo.seconds)
        return run_in_place(self._place, tests, limits, self.repo.roots, self.repo.test_files)

    def _plan(self) -> list[Message]:
        test = calling("run", cmd=shown_command(self.repo))
        mending = mend(self.broken, solution(self.repo))
        edits = [calling(name, **arguments) for name, arguments in mending]
        looks = [calling("read", path=str(mending[0][1]["path"])), test] if mending else []
        return [*looks, *edits, test] if len(looks) + len(edits) < self.max_calls else edits[: self.max_calls]

    def _aimless(self, rng: random.Random) -> Message:
        path = rng.choice(sorted(self.broken))
        text = self._text(path) if path in self._place.files() else ""
        lines = text.splitlines(keepends=True)
        once = [line for line in lines if line.strip() and text.count(line) == 1]
        match rng.randrange(3):
            case 0 if once:
                line = rng.choice(once)
                return calling("edit", path=path, old=line, new=rng.choice(["", line.rstrip("\n") + "  #\n"]))
            case 1:
                return calling("run", cmd=rng.choice(["ls", f"wc -l {path}", shown_command(self.repo)]))
        return calling("read", path=path, start=rng.randint(1, max(1, len(lines))))
