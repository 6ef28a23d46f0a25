from latih.core.pip import run_pip


def test_what_fails_is_told_in_one_line() -> None:
    told = run_pip(["download", "--no-index", "no-such-package-of-latih"], timeout=60)
    assert told is not None
    assert told.startswith("Could not find a version that satisfies the requirement no-such-package-of-latih")
    assert "\n" not in told


def test_a_success_says_nothing(tmp_path) -> None:
    (tmp_path / "requirements.txt").write_text("")
    assert (
        run_pip(["install", f"--target={tmp_path}", f"--requirement={tmp_path}/requirements.txt"], timeout=60) is None
    )


def test_whoever_waits_is_called_meanwhile(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("latih.core.pip.EVERY", 0.02)
    calls: list[int] = []
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("")
    words = ["install", f"--target={tmp_path}", f"--requirement={requirements}"]
    assert run_pip(words, timeout=60, temporary=tmp_path, waiting=lambda: calls.append(1)) is None
    assert calls


def test_the_time_is_bounded() -> None:
    assert run_pip(["download", "--no-index", "x"], timeout=0.001) == "no answer in 0 s"
