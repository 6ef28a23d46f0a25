"""Finds the tasks of reasoning-gym that nobody should train on, and writes the list that the env excludes them by.

    python bench/reasoning_gym_audit.py [--write]

For every task it draws puzzles and asks the task's own scorer what it pays for replies that answer nothing: the empty
one, the question, lists of letters and numbers, values of the wrong type, and the right answer hidden among wrong ones.
A task is

- unsafe, where the scorer hands the reply to `eval`: it would run whatever a policy writes;
- unstable, where puzzles depend on PYTHONHASHSEED or on the process's global generators;
- without an oracle, where hardly any puzzle comes with an answer that its own scorer takes;
- fragile, where the scorer raises on such a reply: each is an error, and a policy that has yet to learn the form of an
  answer would stop the run;
- exploitable, where a reply that cannot be right (NONSENSE) is ever paid in full, or one that may be right by chance,
  such as a part of the question, more often than the best constant guess, by MARGIN.

It takes some minutes. What it finds is of the installed version; the file names it.
"""

import argparse
import builtins
import contextlib
import hashlib
import io
import json
import math
import os
import random
import re
import signal
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import numpy as np

from latih.core import derive_seed
from latih.envs.reasoning_gym import EXCLUDED, create, names, oracle

PUZZLES = 10
MARGIN = 0.1
LIMIT = 10
"""Seconds of CPU for one call of a generator or a scorer."""
CANARY = "[].__class__"

NUMBERS = [str(n) for n in range(1000)]
CONSTANT = {
    "nothing": ["", " ", "\n", "<answer>", "None"],
    "a list of letters": [
        " or ".join(string.ascii_uppercase),
        ", ".join(string.ascii_uppercase),
        string.ascii_uppercase,
    ],
    "every common word": ["Yes or No", "True or False", "yes, no, true, false, pass, none", "True False"],
    "a list of numbers": [" or ".join(NUMBERS), ", ".join(NUMBERS), "\n".join(NUMBERS), f"[{', '.join(NUMBERS)}]"],
    "a value of the wrong type": ["[]", "{}", "()", "null", "nan", "inf", "-1", "1e999", "[[]]", '""', "9" * 400, "*"],
}


AMONG, BESIDE = "the right answer among wrong ones", "the right answer and a wrong one"
NONSENSE = {"a list of letters", "every common word", "a list of numbers", "the question", AMONG, BESIDE}


class TooLong(Exception):
    """A generator or a scorer took longer than LIMIT."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Raise TooLong after LIMIT seconds."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def paid(dataset: Any, entry: dict[str, Any], reply: str) -> float | None:
    """What the scorer pays; None where it raises."""
    try:
        with limited(), contextlib.redirect_stdout(io.StringIO()):
            return float(dataset.score_answer(reply, entry))
    except Exception:
        return None


def raises(dataset: Any, entry: dict[str, Any], reply: str) -> bool:
    """Whether the scorer fails, or pays what is no finite number. The env never shows it an empty answer."""
    score = paid(dataset, entry, reply)
    return bool(reply.strip()) and (score is None or not math.isfinite(score))


def full(dataset: Any, entry: dict[str, Any], reply: str) -> bool:
    """Whether the scorer pays in full."""
    return (paid(dataset, entry, reply) or 0) >= 1


def replies(entry: dict[str, Any], right: str, wrong: list[str]) -> dict[str, list[str]]:
    """The attacks on one puzzle, by kind."""
    question = entry["question"]
    lines = [line for line in question.splitlines() if line.strip()]
    maths = re.findall(r"\$[^$]+\$", question)
    among = sorted({*wrong, right})
    return CONSTANT | {
        "the question": [question],
        "a part of the question": [lines[0], lines[-1], max(lines, key=len), question.rpartition(":")[2].strip()],
        "what the question sets in maths": maths[-1:] or [""],
        AMONG: [separator.join(among) for separator in (" or ", ", ", "\n", " ")],
        BESIDE: [
            f"{right} or {wrong[0]}",
            f"{wrong[0]} or {right}",
            f"{right}\n{wrong[0]}",
        ],
    }


def evaluates(dataset: Any, entry: dict[str, Any]) -> bool:
    """Whether the scorer hands the reply to `eval` or `exec`."""
    seen: list[bool] = []

    def watching(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(source: Any, *args: Any, **more: Any) -> Any:
            seen.append("__class__" in (source if isinstance(source, str) else repr(getattr(source, "co_names", ""))))
            return real(source, *args, **more)

        return call

    real = {name: getattr(builtins, name) for name in ("eval", "exec")}
    for name, function in real.items():
        setattr(builtins, name, watching(function))
    try:
        shapes = (CANARY, f"[[{CANARY}]]", f"1 + {CANARY}", str(entry["answer"]).replace("1", CANARY, 1))
        for reply in shapes:
            paid(dataset, entry, reply)
    finally:
        for name, function in real.items():
            setattr(builtins, name, function)
    return any(seen)


def audit(name: str) -> tuple[str, str] | None:
    """Why the task is excluded: the kind, and words. None where it is sound."""
    drawn, broken = [], 0
    for number in range(PUZZLES):
        random.seed(0)
        np.random.seed(0)
        before = random.getstate(), np.random.get_state()[1].tobytes()
        try:
            with limited():
                dataset, entry = create(name, derive_seed("audit", name, number))
        except Exception as exc:
            return "broken", f"its generator raises {type(exc).__name__}: {exc}"
        # the first puzzle imports what it needs, which may draw
        if number and before != (random.getstate(), np.random.get_state()[1].tobytes()):
            return "unstable", "draws from the process's global generators"
        answer = oracle(name, entry)
        if answer and full(dataset, entry, answer):
            drawn.append((dataset, entry, answer))
        else:
            broken += 1
    if evaluates(dataset, entry):
        return "unsafe", "its scorer hands the reply to eval"
    if len(drawn) < PUZZLES / 2:
        return "no oracle", f"{broken} of {PUZZLES} puzzles come without an answer that the scorer takes"
    answers = [answer for *_, answer in drawn]
    guess = max(sum(full(d, e, each) for d, e, _ in drawn) / len(drawn) for each in sorted(set(answers)))
    found: dict[str, float] = {}
    attacks = []
    for dataset, entry, right in drawn:
        fragile = [each for kind in CONSTANT.values() for each in kind if raises(dataset, entry, each)]
        if fragile:
            return "fragile", f"its scorer raises on replies such as {fragile[0][:20]!r}"
        wrong = [each for each in answers if each != right and not full(dataset, entry, each)] or ["0"]
        attacks.append(
            {kind: [full(dataset, entry, r) for r in each] for kind, each in replies(entry, right, wrong).items()}
        )
    for kind in attacks[0]:
        rates = [sum(column) / len(drawn) for column in zip(*(each[kind] for each in attacks), strict=True)]
        found[kind] = max(rates)
    cheats = [kind for kind in found if found[kind] > (0 if kind in NONSENSE else guess + MARGIN)]
    if cheats:
        best = max(cheats, key=lambda kind: found[kind])
        return (
            "exploitable",
            f"{best} is paid in full in {found[best]:.0%} of the puzzles, a constant guess in {guess:.0%}",
        )
    return None


def digests() -> dict[str, str]:
    """A digest of some puzzles of each task, for comparison across processes."""
    found = {}
    for name in names():
        text = ""
        for number in range(3):
            with contextlib.suppress(Exception), limited():
                _, entry = create(name, derive_seed("audit", name, number))
                text += entry["question"] + str(entry["answer"])
        found[name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def main() -> None:
    """Audit every task; with --write, write the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the list of the env")
    parser.add_argument("--digests", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="tasks to audit; all of them")
    args = parser.parse_args()
    if args.digests:
        print("\n" + json.dumps(digests()))
        return
    wanted = args.names or names()
    start, excluded = time.perf_counter(), {}
    for name in wanted:
        if found := audit(name):
            excluded[name] = {"kind": found[0], "why": found[1]}
        print(f"{name}: {' '.join(found) if found else 'sound'}", flush=True)
    if not args.names:
        runs = []
        for seed in ("0", "1", "2"):
            command = [sys.executable, __file__, "--digests"]
            done = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        for name in wanted:
            if len({run[name] for run in runs}) > 1 and excluded.get(name, {}).get("kind") != "unsafe":
                excluded[name] = {"kind": "unstable", "why": "its puzzles depend on PYTHONHASHSEED"}
                print(f"{name}: unstable")
    print(f"{len(wanted)} tasks, {len(excluded)} excluded, {time.perf_counter() - start:.0f} s")
    if args.write:
        content = {"version": version("reasoning-gym"), "tasks": dict(sorted(excluded.items()))}
        EXCLUDED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
