"""The metrics of a training step: what the rollouts were like, what learning did, where the time went."""

from collections.abc import Mapping, Sequence

from latih.core.protocols import StepResult
from latih.core.trajectories import Group
from latih.rollout import summarize


def step_metrics(groups: Sequence[Group], result: StepResult, seconds: Mapping[str, float]) -> dict[str, float]:
    """One flat dictionary, ready to be logged. `seconds` holds at least `step`, `rollout` and `train`.

    - `reward`: the mean over valid trajectories; the rest of `latih.rollout.summarize` under its own names.
    - the trainer's own metrics.
    - `sampled_tokens_per_second`: over the time of the rollouts, envs and prompts included.
    - `computed_tokens_per_second`: tokens that the learner took forward and backward, a prefix that rows share counted
      once, over the time of the training.
    - `row_tokens_per_second`: the tokens of the rows trained on, prompts included and shared prefixes repeated, over
      the same time.
    - `seconds/…`: where the time went; `seconds/step` is all of it.
    """
    played = summarize(groups)
    if "reward/mean" in played:
        played = {"reward": played.pop("reward/mean"), **played}
    sampled = sum(each.sampled_tokens for group in groups for each in group.trajectories)
    return {
        **played,
        **result.metrics,
        "sampled_tokens": sampled,
        "sampled_tokens_per_second": sampled / max(seconds["rollout"], 1e-9),
        **{
            f"{name}_per_second": result.metrics.get(name, 0.0) / max(seconds["train"], 1e-9)
            for name in ("computed_tokens", "row_tokens")
        },
        **{f"seconds/{name}": value for name, value in seconds.items()},
    }
