"""What a batch of groups says about the rollouts that made it."""

import statistics
from collections import Counter
from collections.abc import Sequence as SequenceOf

from latih.core import Group


def summarize(groups: SequenceOf[Group]) -> dict[str, float]:
    """Numbers over a batch. Rewards, metrics and lengths are of the trajectories that no error ended.

    - `reward/mean`, `reward/std` (over trajectories, population), `reward/min`, `reward/max`; absent where all failed.
    - `env/<name>`: the mean of a metric of the env, over the trajectories that report it; in the env's own order.
    - `rollout/contrast`: the fraction of groups whose valid rewards differ, over all groups.
    - `rollout/truncated`: the fraction cut by turns, context or the env (by tokens where a harness says so).
    - `rollout/turns`, `rollout/tokens`: means per trajectory, of model calls and of sampled tokens.
    - `rollout/sequences`: mean per trajectory.
    - `<role>/reward`: the mean of a role, where several learn.
    - `errors/fraction` (over all trajectories), `errors/hung` (abandoned calls), and `errors/<kind>`: counts.
    """
    everyone = [each for group in groups for each in group.trajectories]
    valid = [each for group in groups for each in group.valid]
    errors = [each.error for each in everyone if each.error is not None]
    result = {
        "errors/fraction": len(errors) / max(len(everyone), 1),
        "errors/hung": float(sum(error.hung for error in errors)),
    }
    for kind, count in sorted(Counter(error.kind for error in errors).items()):
        result[f"errors/{kind}"] = float(count)
    if groups:
        result["rollout/contrast"] = sum(group.has_contrast for group in groups) / len(groups)
    if not valid:
        return result
    rewards = [each.reward for each in valid]
    result |= {
        "reward/mean": statistics.fmean(rewards),
        "reward/std": statistics.pstdev(rewards),
        "reward/min": min(rewards),
        "reward/max": max(rewards),
        "rollout/truncated": statistics.fmean(each.truncated for each in valid),
        "rollout/turns": statistics.fmean(sum(1 for _ in each.turns) for each in valid),
        "rollout/tokens": statistics.fmean(each.sampled_tokens for each in valid),
        "rollout/sequences": statistics.fmean(len(each.sequences) for each in valid),
    }
    for role in dict.fromkeys(each.role for each in valid) if len({each.role for each in valid}) > 1 else ():
        result[f"{role}/reward"] = statistics.fmean(each.reward for each in valid if each.role == role)
    for name in dict.fromkeys(name for each in valid for name in each.metrics):
        result[f"env/{name}"] = statistics.fmean(each.metrics[name] for each in valid if name in each.metrics)
    return result


def constant_reward(groups: SequenceOf[Group]) -> str | None:
    """A warning where all rewards are equal, so there is nothing to learn from; it shows what the policy said."""
    valid = [each for group in groups for each in group.valid]
    if len(valid) < 2 or len({each.reward for each in valid}) > 1:
        return None
    said = next(
        (
            message.text
            for each in valid
            for sequence in each.sequences
            for message in reversed(sequence.messages)
            if message.role == "assistant"
        ),
        "",
    )
    return (
        f"all {len(valid)} rewards are {valid[0].reward:g}: there is nothing to learn from. "
        f"The policy said, for instance: {said[:200]!r}"
    )
