import json
from pathlib import Path

import pytest

from latih.core import ErrorRecord, LatihError, Message, SamplingParams, Sequence, StopReason, Trajectory, Turn
from latih.evaluation import EvalResult, estimate
from latih.evaluation.intervals import wilson
from latih.evaluation.result import conversation
from latih.harnesses import HarnessSettings


def episode(index: int, reward: float, stop: StopReason = StopReason.TERMINATED, **metrics: float) -> Trajectory:
    return Trajectory(env="e", seed=index, index=index, reward=reward, stop_reason=stop, metrics=metrics)


def failed(kind: str) -> Trajectory:
    error = ErrorRecord(kind=kind, message="broke")
    return Trajectory(env="e", seed=9, reward=-99.0, stop_reason=StopReason.ERROR, error=error)


def test_by_hand() -> None:
    found = estimate(
        [
            episode(0, 1.0, win=1.0, moves=3.0),
            episode(1, -1.0, win=0.0, moves=4.0),
            episode(2, 0.0, StopReason.CONTEXT, win=0.0, moves=1.0),
            failed("env"),
            failed("env"),
            failed("sampler"),
        ]
    )
    assert found["episodes"] == 6
    assert found["errors"] == {"env": 2, "sampler": 1}
    assert found["reward"].value == 0.0  # errors are in no mean
    assert found["reward"].high == pytest.approx(4.3027 / 3**0.5, abs=1e-3)
    assert found["rates"]["win"].value == found["rates"]["truncated"].value == pytest.approx(1 / 3)
    assert (found["rates"]["win"].low, found["rates"]["win"].high) == pytest.approx((0.0615, 0.7923), abs=1e-4)
    assert found["means"]["moves"].value == pytest.approx(8 / 3)
    assert "moves" not in found["rates"]


@pytest.mark.parametrize("window", [None, 0, 1, 2])
def test_the_example_is_the_whole_episode_whatever_the_window(window: int | None) -> None:
    system = Message(role="system", content="rules")
    # Two exchanges, each of which happens twice.
    said = [Message(role="user" if i % 2 == 0 else "assistant", content=str(i // 4)) for i in range(8)]
    turn = Turn(new_ids=[1], ids=[2], logprobs=[0.0], policy_version=0, stop_reason=StopReason.STOP)
    if window is None:
        sequences = [Sequence(messages=[system, *said], turns=[turn] * 4)]
    else:
        shown = [said[max(0, end - 2 * window) : end + 2] for end in range(0, 8, 2)]
        sequences = [Sequence(messages=[system, *each], turns=[turn]) for each in shown]
    assert conversation(Trajectory(env="e", seed=0, sequences=sequences)) == [system, *said]
    assert conversation(Trajectory(env="e", seed=0)) == []


def test_nothing_to_measure_is_an_error() -> None:
    with pytest.raises(LatihError, match="no episode of 2 could be played to its end: broke"):
        estimate([failed("env"), failed("env")])


def result(**changes: object) -> EvalResult:
    sampling = SamplingParams(temperature=0.7)
    fields = {"label": "after RL", "env": "e", "seed": 0, "sampling": sampling, "max_turns": 3}
    return EvalResult(**{**fields, **estimate([episode(0, 1.0, win=1.0)]), **changes})


def test_the_record_holds_the_sampling_and_survives_the_disk(tmp_path: Path) -> None:
    made = result()
    made.save(tmp_path / "new" / "folder")
    assert json.loads((tmp_path / "new" / "folder" / "eval.json").read_text())["sampling"]["temperature"] == 0.7
    assert EvalResult.load(tmp_path / "new" / "folder") == made
    assert made.metrics == {
        "eval/reward": 1.0, "eval/win": 1.0, "eval/truncated": 0.0, "eval/turns": 0.0, "eval/tokens": 0.0
    }  # fmt: skip


def test_the_conditions_tell_what_numbers_depend_on(tmp_path: Path) -> None:
    made = result(
        env_args={"side": "o"}, harness=HarnessSettings(args={"window": 0}),
        sampling=SamplingParams(temperature=0.0, top_k=5, seed=3),
    )  # fmt: skip
    assert made.conditions == {
        "env": "e(side='o')",
        "seed": "0",
        "harness": "chat_loop(window=0)",
        "sampling": "temperature 0, max_tokens 128, top_k 5",
        "max_turns": "3",
        "sandbox": "isolated",
    }
    made.save(tmp_path)
    assert EvalResult.load(tmp_path).conditions == made.conditions
    old = json.loads((tmp_path / "eval.json").read_text())
    del old["harness"], old["env_args"]  # as written before they were recorded
    (tmp_path / "eval.json").write_text(json.dumps(old))
    assert EvalResult.load(tmp_path).conditions["harness"] == "not recorded"


def test_a_damaged_record_is_one_line(tmp_path: Path) -> None:
    for text in ("{", '{"label": 3}'):
        (tmp_path / "eval.json").write_text(text)
        with pytest.raises(LatihError, match=r"cannot read .*eval\.json") as caught:
            EvalResult.load(tmp_path)
        assert "\n" not in str(caught.value)


def test_the_roles_of_a_game_are_one_game() -> None:
    def seat(index: int, role: str, reward: float, win: float) -> Trajectory:
        return episode(index, reward, win=win, moves=reward + 4).model_copy(update={"role": role})

    found = estimate(
        [seat(i, role, reward, float(reward > 0)) for i in range(3) for role, reward in (("x", 1.0), ("o", -1.0))]
        + [seat(3, "x", 1.0, 1.0), seat(3, "o", 1.0, 1.0)]
    )
    # games of mean 0, 0, 0 and 1: 1/4 ± t(3) · 1/2 / 2 = 1/4 ± 3.1824 / 4
    assert (found["reward"].low, found["reward"].high) == pytest.approx((0.25 - 0.7956, 0.25 + 0.7956), abs=1e-3)
    assert found["reward"].n == found["means"]["moves"].n == 4
    assert found["rates"]["win"].value == 5 / 8
    assert found["rates"]["x/win"] == wilson(4, 4)
    assert found["rates"]["o/win"] == wilson(1, 4)
