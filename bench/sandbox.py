"""What a sandboxed run costs, and what it leaves behind: `python bench/sandbox.py --runs 10000`."""

import argparse
import contextlib
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from latih.sandbox import Limits, Workspace, backend, run
from latih.sandbox.process import BOOT

SOURCES = {
    "well-behaved": "import os; os.write(int(os.environ['LATIH_CHANNEL']), b'1'); open('file', 'w').write('x')",
    "leaves a daemon": "import os, time\nif os.fork() == 0:\n  os.setsid()\n  time.sleep(600)",
    "runs for ever": "while True: pass",
    "fills its disk": "open('file', 'wb').write(bytes(2 << 20))",
}


def main() -> None:
    """Print latencies, then run many times from several threads and compare what is there before and after."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="executions of the leak check")
    parser.add_argument("--threads", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--samples", type=int, default=200, help="executions whose latency is measured, one by one")
    options = parser.parse_args()
    print(f"backend {backend().name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    latency("python source", options.samples, lambda: run("pass"))
    latency("command `true`", options.samples, lambda: run(["true"]))
    with Workspace({f"folder/{number}.py": "x = 1\n" * 100 for number in range(100)}) as workspace:
        latency("python in a workspace of 100 files", options.samples, lambda: run("pass", workspace=workspace))
    sys.exit(leaks(options.runs, options.threads))


def latency(what: str, samples: int, work: Callable[[], object]) -> None:
    """Wall time of a whole call of `run`, and the CPU time of it and its processes, which neighbours hardly touch."""
    taken = []
    before = spent()
    for _ in range(samples):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    cuts = statistics.quantiles(taken, n=100)
    print(f"{what}: p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms over {samples} runs, ", end="")
    print(f"{1000 * (spent() - before) / samples:.1f} ms of CPU time each", flush=True)


def spent() -> float:
    """Seconds of CPU time of this process and of all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def leaks(runs: int, threads: int) -> int:
    """Run a mix of programs, and return how many kinds of things there are more of than before."""
    sources = list(SOURCES.values())

    def one(number: int) -> int | None:
        source = sources[number % 20 if number % 20 < len(sources) else 0]
        return run(source, limits=Limits(wall=0.5 if source == SOURCES["runs for ever"] else 60, disk=1)).code

    one(0)
    before, start = census(), time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        codes = list(pool.map(one, range(runs)))
    seconds = time.perf_counter() - start
    after = census()
    print(f"{runs} runs from {threads} threads in {seconds:.0f} s, {runs / seconds:.1f} a second")
    print(f"codes: { {code: codes.count(code) for code in sorted(set(codes), key=str)} }")
    for what in before:
        print(f"{what}: {len(before[what])} before, {len(after[what])} after", *sorted(after[what] - before[what])[:9])
    return sum(not after[what] <= before[what] for what in before)


def census() -> dict[str, set[str]]:
    """What a run might leave behind, that of others included: let nobody else run programs meanwhile.

    Processes are those in another namespace, children of ours, and those that a launcher started, forks of it too.
    """
    ours = os.readlink("/proc/self/ns/pid")
    sandboxed, mounts = set(), set(Path("/proc/self/mountinfo").read_text().splitlines())
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = (each / "stat").read_text().rpartition(")")[2].split()[1]
            if parent == str(os.getpid()) or BOOT.encode() in (each / "cmdline").read_bytes():
                sandboxed.add(each.name)
        with contextlib.suppress(OSError):
            mounts.add(os.readlink(each / "ns" / "mnt"))  # one that lives holds all of its mounts
            if os.readlink(each / "ns" / "pid") != ours or b"LATIH_CHANNEL=" in (each / "environ").read_bytes():
                sandboxed.add(each.name)
    return {
        "processes in sandboxes": sandboxed,
        "mounts, and namespaces of them": mounts,
        "temporary files": set(os.listdir(tempfile.gettempdir())),
        "open files": set(os.listdir("/proc/self/fd")),
        "threads": set(os.listdir("/proc/self/task")),
    }


if __name__ == "__main__":
    main()
