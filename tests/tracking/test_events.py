from latih.tracking import Events, Silent


def test_silent_is_a_watcher() -> None:
    watcher: Events = Silent()
    with watcher.progress("part", 2) as advance:
        advance(1)
    watcher.note("a")
    watcher.warn("b")
    watcher.step(1, 2, {"reward": 0.0})
