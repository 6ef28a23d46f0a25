"""How quickly mailboxes are made, opened and searched, and episodes played: `python bench/mail_search.py`."""

import random
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from latih.envs.mail_search import MailSearch
from latih.envs.mail_search.store import Store, image, write
from latih.envs.mail_search.world import mailbox


def best(work: Callable[[], Any], times: int = 5) -> float:
    """Seconds of the quickest of a few."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def episodes(policy: str, count: int, **dials: Any) -> float:
    """Seconds that an episode takes, the mailbox included."""
    rng, start = random.Random(0), time.perf_counter()
    for seed in range(count):
        env = MailSearch(**dials)
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.scripted(policy, rng))
            over = terminated or truncated
        env.close()
    return (time.perf_counter() - start) / count


def main() -> None:
    """Print the figures."""
    for size in (32, 200, 2000):
        mails, _ = mailbox(0, size)
        made, indexed = best(partial(mailbox, 0, size)), best(partial(image, mails))
        print(f"{size} mails in memory: made in {1e3 * made:.1f} ms, indexed in {1e3 * indexed:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mail.sqlite"
        mails, questions = mailbox(0, 20_000)
        made, indexed = best(partial(mailbox, 0, 20_000), 3), best(partial(write, path, mails), 3)
        print(
            f"20000 mails in a file: made in {made:.2f} s, indexed in {indexed:.2f} s, {path.stat().st_size >> 20} MiB"
        )
        print(f"opened in {1e3 * best(lambda: Store(path).close()):.2f} ms")
        with closing(Store(path)) as store:
            for name, words in (("its words", questions["lookup"][0].searches[0]), ("frequent words", "the of is hi")):
                print(f"search for {name}: {1e3 * best(partial(store.search, words, limit=5)):.2f} ms")
    print(f"an episode, random, 32 mails: {1e3 * episodes('random', 200, mails=32):.1f} ms")
    print(f"an episode, expert, 200 mails: {1e3 * episodes('expert', 200):.1f} ms")


if __name__ == "__main__":
    main()
