import torch

from latih.train.ratios import ratios


def test_token_ratio_is_each_tokens_own():
    log_ratio = torch.tensor([0.1, -0.2, 0.3])
    assert torch.equal(ratios.get("token")(log_ratio, torch.tensor([0, 0, 1])), log_ratio)


def test_sequence_ratio_is_the_geometric_mean_of_its_row():
    log_ratio = torch.tensor([0.1, 0.3, -0.6, 0.5], requires_grad=True)
    found = ratios.get("sequence")(log_ratio, torch.tensor([0, 0, 0, 1]))
    # (0.1 + 0.3 - 0.6) / 3 = -1/15
    torch.testing.assert_close(found, torch.tensor([-1 / 15, -1 / 15, -1 / 15, 0.5]))
    found.sum().backward()
    torch.testing.assert_close(log_ratio.grad, torch.ones(4))
