"""Tokens per second of the embedded engine, beside `transformers.generate` on the same weights in the same run."""

import argparse
import asyncio

import torch
from common import compare, merged, policy, prompts
from transformers import AutoModelForCausalLM

from latih.core.sampling import SamplingParams
from latih.inference.engine import Engine

REQUESTS, PROMPT, REPLY = 64, 45, 128
TURNS, OBSERVATION, ACTION = 6, 24, 8


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    model = policy()
    peer = AutoModelForCausalLM.from_pretrained(merged(model), dtype=model.dtype)
    many = prompts(REQUESTS, PROMPT)
    news = prompts(REQUESTS * TURNS, OBSERVATION)

    @torch.inference_mode()
    def generate(batch: list[list[int]], tokens: int) -> list[list[int]]:
        ids = torch.tensor(batch)
        out = peer.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            top_k=0,
            top_p=1.0,
            temperature=1.0,
            pad_token_id=0,
        )
        return out[:, len(batch[0]) :].tolist()

    with Engine(model, lambda ids: "") as engine:

        async def play(i: int) -> int:
            conversation, sampled = list(many[i]), 0
            for turn in range(TURNS):
                conversation += news[i * TURNS + turn]
                sample = await engine.sample(conversation, SamplingParams(max_tokens=ACTION))
                conversation += sample.ids
                sampled += len(sample.ids)
            return sampled

        async def replies() -> int:
            params = SamplingParams(max_tokens=REPLY)
            return sum(len(each.ids) for each in await asyncio.gather(*(engine.sample(p, params) for p in many)))

        async def episodes() -> int:
            return sum(await asyncio.gather(*(play(i) for i in range(REQUESTS))))

        def generate_replies() -> int:
            return sum(map(len, generate(many, REPLY)))

        def generate_episodes() -> int:
            conversations, sampled = [list(each) for each in many], 0
            for turn in range(TURNS):
                for i, each in enumerate(conversations):
                    each += news[i * TURNS + turn]
                for each, reply in zip(conversations, generate(conversations, ACTION), strict=True):
                    each += reply
                    sampled += len(reply)
            return sampled

        asyncio.run(episodes())  # warm up
        generate(many, 2)
        compare(
            f"{REQUESTS} requests x {REPLY} new tokens, adapter active",
            "tokens/s",
            lambda: asyncio.run(replies()),
            generate_replies,
            runs,
        )
        compare(
            f"{REQUESTS} episodes x {TURNS} turns of {OBSERVATION} read and {ACTION} sampled tokens",
            "sampled tokens/s",
            lambda: asyncio.run(episodes()),
            generate_episodes,
            runs,
        )


if __name__ == "__main__":
    main()
