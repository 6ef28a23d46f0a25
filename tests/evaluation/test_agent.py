import json
from pathlib import Path

import pytest

from latih.core import LatihError, ModelError, Trajectory
from latih.data import read_trajectories
from latih.envs import EnvSettings, make
from latih.evaluation import Agent, AgentSettings, EvaluationSettings, evaluate, find_source
from latih.harnesses import HarnessSettings
from latih.models.policy import LoraSettings, ModelSettings, Policy, PolicySettings
from latih.rollout import RolloutSettings
from latih.runs import Run, RunSettings
from tests.tiny import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def settings(model: Path, lora: LoraSettings | None = None) -> AgentSettings:
    return AgentSettings(
        policy=PolicySettings(model=ModelSettings(path=str(model), dtype="float32"), lora=lora),
        rollout=RolloutSettings(max_turns=5, sampling={"max_tokens": 4}),
        inference={"kv_cache_gb": 0.05},
    )


def make_run(folder: Path, model: Path, lora: LoraSettings | None) -> tuple[Run, Policy]:
    """A run with one checkpoint, whose weights are not those of the base model."""
    tree = settings(model, lora).model_dump(mode="json")
    config = {"trainer": {"policy": tree["policy"]}, "rollout": tree["rollout"], "inference": tree["inference"]}
    run = Run.create(RunSettings(folder=str(folder), name="r"), config)
    policy = Policy.load(model, lora=lora, dtype="float32", seed=1)
    for each in policy.masters.values():
        each.data += 0.02
    policy.refresh(7)

    def write(path: Path) -> None:
        (path / "trainer.json").write_text(json.dumps({"model": policy.fingerprint}))
        if lora is not None:
            policy.save_adapter(path / "adapter")
        else:
            from latih.models.weights import write_tensors

            write_tensors(path / "masters.safetensors", policy.state())

    run.checkpoints().save(3, write, {"version": policy.version})
    run.close()
    return run, policy


@pytest.mark.parametrize("lora", [LoraSettings(rank=2), None])
def test_a_checkpoint_gives_the_trained_weights(tmp_path: Path, model: Path, lora: LoraSettings | None) -> None:
    run, policy = make_run(tmp_path, model, lora)
    for path in (run.folder, run.folder / "checkpoints" / "step-000003"):
        with Agent.load(path) as agent:
            assert agent.policy.version == 7
            assert agent.settings.rollout.max_turns == 5
            loaded = agent.policy.state()
            assert all(loaded[name].equal(value) for name, value in policy.state().items())


@pytest.mark.parametrize("difference", [{"hidden": 64}, {"seed": 1}], ids=["shape", "weights"])
def test_a_checkpoint_of_another_model_is_one_line(tmp_path: Path, model: Path, difference: dict[str, int]) -> None:
    run, _ = make_run(tmp_path / "runs", model, LoraSettings(rank=2))
    tiny_model(tmp_path / "other", **difference)
    text = (run.folder / "config.yaml").read_text().replace(str(model), str(tmp_path / "other"))
    (run.folder / "config.yaml").write_text(text)
    with pytest.raises(ModelError, match="another model") as caught:
        Agent.load(run.folder)
    assert "\n" not in str(caught.value)
    with Agent.load(run.folder, settings(model, LoraSettings(rank=2))) as agent:  # the settings say where its model is
        assert agent.policy.folder == model


def test_a_checkpoint_that_names_no_model_is_one_line(tmp_path: Path, model: Path) -> None:
    run, _ = make_run(tmp_path, model, LoraSettings(rank=2))
    file = run.folder / "checkpoints" / "step-000003" / "trainer.json"
    for text in ("{}" + " " * (file.stat().st_size - 2), "[" + " " * (file.stat().st_size - 1)):  # whole by its size
        file.write_text(text)
        with pytest.raises(ModelError, match="is no checkpoint of a training"):
            Agent.load(run.folder)


def test_sources(tmp_path: Path, model: Path) -> None:
    run, _ = make_run(tmp_path, model, LoraSettings(rank=2))
    assert find_source("r", tmp_path).checkpoint == run.folder / "checkpoints" / "step-000003"
    assert find_source(str(model)).checkpoint is None
    (run.folder / "checkpoints" / "step-000004").mkdir()
    with pytest.raises(LatihError, match="is no whole checkpoint"):
        find_source(run.folder / "checkpoints" / "step-000004")
    run.checkpoints().delete(3)
    with pytest.raises(LatihError, match="has no whole checkpoint yet"):
        find_source(run.folder)


def key(trajectory: Trajectory) -> list[list[int]]:
    return [turn.ids for turn in trajectory.turns]


async def test_play_and_evaluate(tmp_path: Path, model: Path) -> None:
    with Agent.load(model, settings(model)) as agent:
        env = make("tic_tac_toe")
        first = await agent.play(env, seed=5)
        assert first.error is None
        assert key(first) == key(await agent.play(env, seed=5))
        rollouts = agent.rollouts(lambda: make("tic_tac_toe"), "tic_tac_toe")
        dials = EvaluationSettings(episodes=6, temperature=0.5)
        folder = tmp_path / "eval"
        seen: list[Trajectory] = []
        asked = {"env": EnvSettings(id="tic_tac_toe"), "harness": agent.settings.harness}
        result = await evaluate(rollouts, dials, label="now", folder=folder, on_done=seen.extend, **asked)
        again = await evaluate(rollouts, dials, label="now")
    assert sorted(each.index for each in seen) == list(range(6))
    assert (result.episodes, result.errors, result.sampling.temperature) == (6, {}, 0.5)
    assert result.harness == HarnessSettings()
    assert result.sampling.max_tokens == 4  # all but the temperature is as in training
    assert sum(each.value for name, each in result.rates.items() if name in ("win", "draw", "loss", "invalid")) == 1.0
    kept = read_trajectories(folder / "episodes.parquet")
    assert [each.index for each in kept] == list(range(6))
    assert len({each.seed for each in kept}) == 6
    assert all(turn.temperature == 0.5 for each in kept for turn in each.turns)
    assert again.reward == result.reward  # the same held-out episodes, sampled the same
    assert result.example == kept[0].sequences[-1].messages
