import math

import torch

from latih.train.surrogates import surrogates

RATIOS = torch.tensor([1.5, 1.5, 0.5, 0.5, 1.1])
ADVANTAGES = torch.tensor([2.0, -2.0, 2.0, -2.0, 1.0])


def _run(name):
    logprobs = torch.full((5,), -1.0, requires_grad=True)
    log_ratio = RATIOS.log() + (logprobs - logprobs.detach())
    loss, clipped = surrogates.get(name)(log_ratio, logprobs, ADVANTAGES, 0.2, 0.28)
    loss.sum().backward()
    return loss.detach(), clipped, logprobs.grad


def test_clip_takes_the_worse_of_both_and_stops_the_gradient_where_clipped():
    loss, clipped, grad = _run("clip")
    # r=1.5 A=2: min(3, 1.28*2); r=1.5 A=-2: min(-3, -2.56); r=.5 A=2: min(1, 1.6); r=.5 A=-2: min(-1, -1.6); r=1.1 A=1
    torch.testing.assert_close(loss, torch.tensor([-2.56, 3.0, -1.0, 1.6, -1.1]))
    assert clipped.tolist() == [True, False, False, True, False]
    torch.testing.assert_close(grad, torch.tensor([0.0, 3.0, -1.0, 0.0, -1.1]))


def test_cispo_clips_the_weight_but_keeps_every_gradient():
    loss, clipped, grad = _run("cispo")
    weights = torch.tensor([1.28, 1.28, 0.8, 0.8, 1.1])
    torch.testing.assert_close(loss, weights * ADVANTAGES)  # logprob -1
    assert clipped.tolist() == [True, True, True, True, False]
    torch.testing.assert_close(grad, -weights * ADVANTAGES)


def test_reinforce_never_clips():
    loss, clipped, grad = _run("reinforce")
    torch.testing.assert_close(loss, -RATIOS * ADVANTAGES)
    assert not clipped.any()
    torch.testing.assert_close(grad, -RATIOS * ADVANTAGES)


def test_at_ratio_one_all_have_the_policy_gradient():
    for name in surrogates:
        logprobs = torch.tensor([math.log(0.5)], requires_grad=True)
        loss, _ = surrogates.get(name)(logprobs - logprobs.detach(), logprobs, torch.tensor([3.0]), 0.2, 0.2)
        loss.sum().backward()
        torch.testing.assert_close(logprobs.grad, torch.tensor([-3.0]))
