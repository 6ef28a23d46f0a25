"""Choosing tokens against hand-worked distributions."""

import math

import pytest
import torch

from latih.core.sampling import SamplingParams
from latih.inference.choice import choose

PROBS = [0.1, 0.4, 0.2, 0.3]


def pick(uniform: float, **params: float) -> tuple[int, float, float | None]:
    logits = torch.tensor([PROBS]).log()
    chosen = choose(logits, [SamplingParams(**params)], [uniform])[0]
    return chosen.id, math.exp(chosen.logprob), None if chosen.full_logprob is None else math.exp(chosen.full_logprob)


@pytest.mark.parametrize(("uniform", "token"), [(0.0, 0), (0.0999, 0), (0.101, 1), (0.499, 1), (0.501, 2), (0.9999, 3)])
def test_inverse_transform(uniform: float, token: int) -> None:
    chosen, prob, full = pick(uniform)
    assert (chosen, full) == (token, None)
    assert prob == pytest.approx(PROBS[token], rel=1e-5)


def test_temperature_sharpens() -> None:
    # squares: .01 .16 .04 .09, of .30
    assert pick(0.5, temperature=0.5)[:2] == (1, pytest.approx(0.16 / 0.30, rel=1e-5))
    assert pick(0.9, temperature=0.0)[:2] == (1, pytest.approx(0.4, rel=1e-5))


@pytest.mark.parametrize(
    ("params", "kept"),
    [({"top_k": 2}, {1: 0.4, 3: 0.3}), ({"top_p": 0.6}, {1: 0.4, 3: 0.3}), ({"min_p": 0.7}, {1: 0.4, 3: 0.3})],
)
def test_truncation_keeps_the_likely_and_reports_both(params: dict[str, float], kept: dict[int, float]) -> None:
    seen = {pick(u / 100, **params)[0] for u in range(100)}
    assert seen == set(kept)
    token, prob, full = pick(0.99, **params)
    assert prob == pytest.approx(kept[token] / sum(kept.values()), rel=1e-5)
    assert full == pytest.approx(kept[token], rel=1e-5)


def test_frequencies_over_a_vocabulary_of_many_blocks() -> None:
    vocab = 1000
    weights = torch.rand(vocab, generator=torch.Generator().manual_seed(0))
    count = 4000
    logits = weights.log().expand(count, vocab).clone()
    uniforms = [(i + 0.5) / count for i in range(count)]
    ids = [each.id for each in choose(logits, [SamplingParams()] * count, uniforms)]
    assert ids == sorted(ids)
    histogram = torch.bincount(torch.tensor(ids), minlength=vocab) / count
    assert (histogram - weights / weights.sum()).abs().max() < 1.01 / count


def test_impossible_tokens_are_never_chosen() -> None:
    logits = torch.full((2, 600), -math.inf)
    logits[:, 300] = 0.0
    chosen = choose(logits, [SamplingParams()] * 2, [0.0, 0.9999999999999999])
    assert [each.id for each in chosen] == [300, 300]
