"""The command `latih`. Nothing heavy is imported before a command needs it, so that `latih --help` is instant."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import NoReturn

from latih import __version__
from latih.core.errors import LatihError

EXAMPLES = """examples:
  latih train tic_tac_toe
  latih train tic_tac_toe trainer.steps=40 trainer.optimizer.lr=1e-4
  latih train my_env.py:MyEnv --dry-run
  latih train --resume
  latih eval runs/<run> tic_tac_toe --episodes 200
  latih baseline tic_tac_toe
  latih exploits code
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LatihError(f"{message}; see `{self.prog} --help`")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = _Parser(
        prog="latih",
        description="Train language-model agents by reinforcement learning in environments with verifiable rewards.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"latih {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)

    train = commands.add_parser("train", help="train a model, and report how good it was before and after")
    train.add_argument("target", nargs="?", help="a recipe, a YAML file, an environment, or my_env.py:MyEnv")
    train.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="settings, such as trainer.steps=40"
    )
    train.add_argument("--dry-run", action="store_true", help="check and print everything, train nothing")
    train.add_argument(
        "--resume", nargs="?", const="", metavar="RUN", help="go on from the last checkpoint of RUN, or the latest run"
    )
    train.add_argument("--long", action="store_true", help="the recipe's long form")

    evaluate = commands.add_parser("eval", help="measure a run, a checkpoint or a model on held-out episodes")
    evaluate.add_argument("policy", help="a run, a checkpoint's folder, or a model (`default`, a folder, an id)")
    evaluate.add_argument("env", help="a recipe, an environment, or my_env.py:MyEnv")
    evaluate.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="such as evaluation.temperature=0"
    )
    evaluate.add_argument("--episodes", type=int, help="how many; 200 unless the settings say otherwise")

    baseline = commands.add_parser("baseline", help="measure trivial and scripted policies, or an endpoint")
    baseline.add_argument("env", nargs="?", help="a recipe, an environment, or my_env.py:MyEnv")
    baseline.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="such as env.args.opponent=minimax"
    )
    baseline.add_argument("--all", action="store_true", help="every environment that comes with latih")
    baseline.add_argument("--episodes", type=int, help="how many; 200 unless the settings say otherwise")
    baseline.add_argument(
        "--policy", action="append", help="no-op, random, echo, expert (all, by default), or an endpoint's http://…/v1"
    )
    baseline.add_argument("--model", default="", help="the name of the endpoint's model")

    exploits = commands.add_parser("exploits", help="try every known cheat on the verifiers, and on naive ones beside")
    exploits.add_argument("name", nargs="?", help="an environment or a verifier; all unless given")

    tasks = commands.add_parser("tasks", help="build the tasks of an environment that makes its own")
    tasks.add_argument("what", choices=["build"])
    tasks.add_argument("env", help="such as repo_repair")
    tasks.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="options of its generator, such as seed=1"
    )
    tasks.add_argument("--out", required=True, metavar="FILE", help="a .parquet or .jsonl file")
    tasks.add_argument("--count", type=int, default=100, help="how many; 100 unless given")
    tasks.add_argument("--packages", default="", metavar="A,B==1.0", help="what to make them from")

    envs = commands.add_parser("envs", help="list the environments there are")
    for each in (train, evaluate, baseline, exploits, tasks, envs):
        each.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return top


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the words of a command. Raises LatihError."""
    top = parser()
    args, rest = top.parse_known_args(argv)
    if odd := [word for word in rest if word.startswith("-") or "=" not in word]:
        raise LatihError(f"{odd[0]!r} is not understood; see `latih {args.command} --help`")
    if "overrides" in args:
        args.overrides = [*args.overrides, *rest]  # argparse hands back positional words that follow an option
    if args.command == "train" and args.target is not None and "=" in args.target:
        args.overrides.insert(0, args.target)
        args.target = None
    if args.command == "train" and args.resume and "=" in args.resume:  # no run's name: the latest is meant
        args.overrides.insert(0, args.resume)
        args.resume = ""
    if args.command == "train" and args.resume is not None and (args.target is not None or args.long):
        word = args.target or "--long"
        raise LatihError(
            f"{word!r} has no use with --resume, which takes a run: `latih train --resume [RUN] [key=value]`"
        )
    if args.command == "baseline" and args.env is not None and "=" in args.env:
        args.overrides.insert(0, args.env)
        args.env = None
    if args.command == "baseline" and (args.env is None) != args.all:
        raise LatihError("say which environment, such as `latih baseline tic_tac_toe`, or --all")
    if args.command == "train" and args.target is None and args.resume is None:
        raise LatihError("say what to train: a recipe or an environment, such as `latih train tic_tac_toe`")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. 0 is success, 2 a mistake that the user can mend, 130 an interruption."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        args = parse(words)
        with _interruptible():
            return _run(args)
    except LatihError as exc:
        if "--debug" in words:
            raise
        print(f"latih: {exc}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt as exc:
        if "--debug" in words:
            raise
        print(f"latih: {exc}" if str(exc) else "latih: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # for instance `latih envs | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(args: argparse.Namespace) -> int:
    if args.command == "envs":
        from latih.cli.envs import list_envs

        return list_envs()
    if args.command == "exploits":
        from latih.cli.exploits import exploits_command

        return exploits_command(args.name)
    if args.command == "tasks":
        from latih.cli.tasks import build_command

        packages = [each for each in args.packages.split(",") if each]
        return build_command(args.env, args.out, args.count, packages, args.overrides)
    from latih.cli.machine import set_threads

    set_threads()  # before torch is imported
    if args.command == "eval":
        from latih.cli.evaluate import evaluate_command

        return evaluate_command(args.policy, args.env, args.overrides, args.episodes)
    if args.command == "baseline":
        from latih.cli.baseline import baseline_command

        return baseline_command(args.env, args.overrides, args.episodes, args.policy, args.model)
    if args.dry_run:
        from latih.cli.dry_run import dry_run

        return dry_run(args.target, args.overrides, resume=args.resume, long=args.long)
    from latih.cli.train import train_command

    return train_command(args.target, args.overrides, resume=args.resume, long=args.long)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """A terminated process (SIGTERM) cleans up as an interrupted one does."""
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        # by way of SIGINT, which asyncio turns into an orderly end when it runs
        previous = signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
        if interrupt is signal.SIG_IGN:  # a script's background job: without this nothing but SIGKILL would end it
            signal.signal(signal.SIGINT, signal.default_int_handler)
    except ValueError:  # not in the main thread: a caller's own process
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
        signal.signal(signal.SIGINT, interrupt)


if __name__ == "__main__":
    sys.exit(main())
