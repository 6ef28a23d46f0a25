"""Groups of random tokens, with logprobs that a policy really gave, for tests of training."""

import random
from pathlib import Path

import torch

from latih.core import Group, Sequence, StopReason, Trajectory, Turn
from latih.models.attention import PackedCausal
from latih.models.policy import LoraSettings, Policy
from tests.tiny import tiny_model


def tiny_policy(folder: Path, seed: int = 0) -> Policy:
    """A tiny float32 policy whose adapter already does something."""
    policy = Policy.load(
        tiny_model(folder / "model"), lora=LoraSettings(rank=4, alpha=8.0), dtype="float32", device="cpu"
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for master in policy.masters.values():
            master.copy_(0.1 * torch.randn(master.shape, generator=generator))
    policy.refresh(0)
    return policy


def logprobs(policy: Policy, ids: list[int], temperature: float = 1.0) -> list[float]:
    """Of every token but the first, by plain means."""
    with torch.no_grad():
        hidden = policy.forward(torch.tensor(ids), torch.arange(len(ids)), PackedCausal([len(ids)]))
        return policy.token_logprobs(hidden[:-1], torch.tensor(ids[1:]), temperature)[0].tolist()


def turn(new: list[int], ids: list[int], **more: object) -> Turn:
    """A turn with logprobs of -1 unless told."""
    fields = {"logprobs": [-1.0] * len(ids), "policy_version": 0, "stop_reason": StopReason.STOP, **more}
    return Turn(new_ids=new, ids=ids, **fields)


def trajectory(*turns: Turn, reward: float = 0.0, **more: object) -> Trajectory:
    """One trajectory of one sequence."""
    return Trajectory(env="test", seed=0, sequences=[Sequence(turns=list(turns))], reward=reward, **more)


def random_groups(policy: Policy, groups: int = 3, size: int = 4, seed: int = 0, noise: float = 0.1) -> list[Group]:
    """Games of one to three turns behind a prompt that the group shares; the sampler's logprobs are a little off."""
    rng = random.Random(seed)

    def tokens(count: int) -> list[int]:
        return [rng.randrange(256) for _ in range(count)]

    made = []
    for g in range(groups):
        prompt = tokens(30)
        trajectories = []
        for i in range(size):
            turns = [turn(prompt if t == 0 else tokens(5), tokens(rng.randint(1, 6))) for t in range(rng.randint(1, 3))]
            each = trajectory(*turns, reward=float(i % 2 + rng.random()), index=g * size + i)
            known = logprobs(policy, each.sequences[0].ids)
            at = 0
            for one in turns:
                at += len(one.new_ids)
                one.logprobs = [p + noise * rng.uniform(-1, 1) for p in known[at - 1 : at - 1 + len(one.ids)]]
                at += len(one.ids)
            trajectories.append(each)
        made.append(Group(id=str(g), trajectories=trajectories))
    return made
