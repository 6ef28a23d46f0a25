"""How far the sampler's logprobs are from the learner's, on the default model with an active adapter.

With `--device cuda` it is the check of the GPU path as well: the same decoder, engine and attention run there.
"""

import argparse
import asyncio

import torch
from common import policy, prompts

from latih.core.sampling import SamplingParams
from latih.inference.engine import Engine
from latih.models.attention import PackedCausal


def main() -> None:
    """Print mean and 99.9th percentile of the absolute difference in each number type."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    device = parser.parse_args().device
    for dtype in ("bfloat16", "float32"):
        model = policy(dtype, device)
        many = prompts(32, 40)

        async def replies(engine: Engine, many: list[list[int]] = many) -> list:
            params = SamplingParams(max_tokens=64)
            return await asyncio.gather(*(engine.sample(each, params) for each in many))

        with Engine(model, lambda ids: "") as engine:
            samples = asyncio.run(replies(engine))
        differences = []
        for prompt, sample in zip(many, samples, strict=True):
            ids = torch.tensor(prompt + sample.ids, device=device)
            rows = torch.arange(len(prompt) - 1, len(ids) - 1, device=device)
            with torch.no_grad():
                attention = PackedCausal([len(ids)], device=device)
                hidden = model.forward(ids, torch.arange(len(ids), device=device), attention)
                logprobs, _ = model.token_logprobs(hidden[rows], ids[rows + 1])
            differences.append((logprobs.cpu() - torch.tensor(sample.logprobs)).abs())
        all_of_them = torch.cat(differences)
        print(
            f"{dtype}: mean {all_of_them.mean():.2e}, 99.9th percentile {all_of_them.quantile(0.999):.2e}, "
            f"largest {all_of_them.max():.2e} nats over {len(all_of_them)} tokens",
            flush=True,
        )


if __name__ == "__main__":
    main()
