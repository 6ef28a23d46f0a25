import subprocess
import sys
import textwrap

import pytest

from latih.cli.baseline import markdown, measure, rows
from latih.cli.main import main
from latih.core import LatihError


def test_one_environment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["baseline", "tic_tac_toe", "env.args.opponent=minimax", "--episodes", "10"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert " ".join(lines[0]) == "tic_tac_toe: 10 held-out episodes, 95 % intervals"
    assert lines[1] == ["policy", "reward", "win", "draw", "loss", "invalid", "moves", "turns"]
    assert [line[0] for line in lines[3:]] == ["no-op", "random", "echo", "expert"]
    nothing, expert = lines[3], lines[6]
    assert nothing[1:] == ["-1.500", "[-1.500,", "-1.500]", "0.000", "0.000", "0.000", "1.000", "0.000", "1.000"]
    assert expert[1:7] == ["0.000", "[0.000,", "0.000]", "0.000", "1.000", "0.000"]


def test_all_environments(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("latih.cli.baseline.builtin_names", lambda: ["arithmetic_tool", "no_such_env", "tic_tac_toe"])
    assert main(["baseline", "--all", "--episodes", "4", "--policy", "expert", "--policy", "no-op"]) == 0
    out = capsys.readouterr().out
    assert "warning: no_such_env is left out: unknown" in out
    found = [line.split()[:3] for line in out.splitlines() if "[" in line]
    assert found[:2] == [["arithmetic_tool", "expert", "1.000"], ["arithmetic_tool", "no-op", "0.000"]]
    assert [each[:2] for each in found[2:]] == [["tic_tac_toe", "expert"], ["tic_tac_toe", "no-op"]]


def test_an_environment_that_fails_is_left_out_of_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No sandbox: told when `code` is made. No sdist: told by the episodes of `repo_repair`.
    def unreachable(repo: object) -> None:
        raise LatihError("cannot fetch the sdist")

    monkeypatch.setenv("LATIH_SANDBOX", "none")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("latih.envs.repo_repair.broken", unreachable)
    monkeypatch.setattr(
        "latih.cli.baseline.builtin_names", lambda: ["arithmetic", "code", "repo_repair", "tic_tac_toe"]
    )
    assert main(["baseline", "--all", "--episodes", "4", "--policy", "expert"]) == 0
    out = capsys.readouterr().out
    assert "warning: code is left out: code cannot be made: SandboxError: LATIH_SANDBOX=none is no sandbox" in out
    assert "warning: repo_repair is left out: cannot fetch the sdist\n" in out
    assert [line.split()[0] for line in out.splitlines() if "[" in line] == ["arithmetic", "tic_tac_toe"]


def test_where_nothing_could_be_measured_there_is_no_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATIH_SANDBOX", "none")
    monkeypatch.setattr("latih.cli.baseline.builtin_names", lambda: ["code"])
    assert main(["baseline", "--all", "--episodes", "4", "--policy", "expert"]) == 2
    told = capsys.readouterr()
    assert "warning: code is left out" in told.out
    assert told.err == "latih: no environment could be measured: the warnings say why\n"


def test_a_table_says_that_programs_were_not_isolated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "LATIH_SANDBOX=unsafe: code that an environment runs is not isolated"
    for name, there in (("bubblewrap", False), ("unsafe", True)):
        monkeypatch.setenv("LATIH_SANDBOX", name)
        assert main(["baseline", "arithmetic", "--episodes", "2", "--policy", "expert"]) == 0
        assert (said in " ".join(capsys.readouterr().out.split())) is there


def test_what_an_env_lacks_is_absent(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bare.py").write_text(
        textwrap.dedent("""
            from latih.envs import MessageEnv

            class Bare(MessageEnv):
                policies = ("random",)

                def reset(self, *, seed=None, options=None):
                    super().reset(seed=seed, options=options)
                    return "word", {}

                def step(self, action):
                    return "", float(action == "word"), True, False, {"metrics": {"length": len(action)}}

                def scripted(self, name, rng):
                    return "ab"
        """)
    )
    _, results = measure(f"{tmp_path / 'bare.py'}:Bare", episodes=2)
    assert markdown(rows(results)).splitlines() == [
        "| policy | reward | length | turns |",
        "|---|---|---|---|",
        "| no-op | 0.000 [0.000, 0.000] | 0.000 | 1.000 |",
        "| random | 0.000 [0.000, 0.000] | 2.000 | 1.000 |",
        "| echo | 1.000 [1.000, 1.000] | 4.000 | 1.000 |",
        "| expert | absent |  |  |",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say which environment"),
        (["--all", "tic_tac_toe"], "say which environment"),
        (["tic_tac_toe", "--episodes", "0"], "--episodes 0: give 1 or more"),
        (["tic_tac_toe", "--policy", "exprt"], "did you mean 'expert'?"),
        (["tic_tac_toe", "--policy", "http://localhost:9/v1"], "say which model of http://localhost:9/v1: --model"),
        (["tic_tac_to"], "did you mean 'tic_tac_toe'"),
        (["--all", "--policy", "expert", "--policy", "exprt"], "did you mean 'expert'?"),
        (["--all", "--policy", "http://localhost:9/v1"], "say which model of http://localhost:9/v1: --model"),
        (["--all", "evaluation.episods=3"], "did you mean 'evaluation.episodes'?"),
    ],
)
def test_misuse_is_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_an_endpoint_is_a_policy() -> None:
    # In a process of its own: a model that always says 5 behind the protocol.
    code = """
        import json, sys, threading
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

        class Five(BaseHTTPRequestHandler):
            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert asked["model"] == "five" and asked["messages"][0]["role"] == "system", asked
                text = json.dumps({"choices": [{"message": {"role": "assistant", "content": "5"}}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            def log_message(self, *_): pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Five)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        from latih.cli.main import main
        url = f"http://127.0.0.1:{server.server_port}/v1"
        words = ["tic_tac_toe", "env.args.side=x", "--policy", url, "--model", "five", "--episodes", "6"]
        sys.exit(main(["baseline", *words]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=True
    )
    [line] = [line.split() for line in done.stdout.splitlines() if "[" in line]
    assert line[0] == "five"
    assert line[1:3] == ["-1.500", "[-1.500,"]  # the second 5 is invalid
    assert line[-2:] == ["1.000", "2.000"]  # one move made, two said


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://", "http://[::1", "http://host:port/v1"])
def test_an_endpoint_that_is_none_is_told_in_one_line(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("latih.models.endpoint.ATTEMPTS", 1)
    assert main(["baseline", "tic_tac_toe", "--policy", url, "--model", "m", "--episodes", "2"]) == 2
    told = capsys.readouterr().err
    assert url in told
    assert "Traceback" not in told
