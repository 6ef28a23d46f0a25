"""Tokens per second and peak memory of LoRA forward and backward, beside transformers + PEFT in the same run.

Each side runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from common import policy, prompts

from latih.models.attention import PackedCausal
from latih.models.source import resolve_model

ROWS, LENGTH = 10, 200
WARM, COUNTED = 1, 3


def latih_step(share: float):
    """Our learner: packed tokens, logits only where a token is trained."""
    model = policy()
    ids = torch.tensor(prompts(ROWS, LENGTH)).flatten()
    positions = torch.arange(LENGTH).repeat(ROWS)
    first = LENGTH - 1 - int(share * (LENGTH - 1))
    rows = torch.cat([torch.arange(first, LENGTH - 1) + i * LENGTH for i in range(ROWS)])

    def step() -> None:
        hidden = model.forward(ids, positions, PackedCausal([LENGTH] * ROWS))
        logprobs, _ = model.token_logprobs(hidden[rows], ids[rows + 1])
        (-logprobs.mean()).backward()
        for each in model.masters.values():
            each.grad = None

    return step


def peft_step(share: float):
    """The peer: the same adapter in PEFT, logits only of the trained tail (as TRL does)."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(resolve_model("default"), dtype=torch.bfloat16)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules=targets))
    ids = torch.tensor(prompts(ROWS, LENGTH))
    keep = int(share * (LENGTH - 1))

    def step() -> None:
        logits = model(ids, logits_to_keep=keep + 1, use_cache=False).logits[:, :-1].float()
        logprobs = logits.log_softmax(-1).gather(-1, ids[:, -keep:, None])
        (-logprobs.mean()).backward()
        model.zero_grad()

    return step


def measure(side: str, share: float) -> None:
    """Time one side and print JSON."""
    step = {"latih": latih_step, "peft": peft_step}[side](share)
    times = []
    for _ in range(WARM + COUNTED):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"tokens_per_second": ROWS * LENGTH / sorted(times[WARM:])[COUNTED // 2], "peak_gib": peak}))


def main() -> None:
    """Print both sides, for rows trained on a sixth of their tokens and on all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--side", choices=["latih", "peft"])
    parser.add_argument("--share", type=float, default=1.0)
    args = parser.parse_args()
    if args.side:
        measure(args.side, args.share)
        return
    for share in (1 / 6, 1.0):
        results: dict[str, list[dict[str, float]]] = {"latih": [], "peft": []}
        for _ in range(args.runs):
            for side, found in results.items():
                command = [sys.executable, __file__, "--side", side, "--share", str(share)]
                found.append(
                    json.loads(subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1])
                )
        speed = {side: [each["tokens_per_second"] for each in found] for side, found in results.items()}
        ratios = sorted(a / b for a, b in zip(speed["latih"], speed["peft"], strict=True))
        middle = args.runs // 2
        peak = max(each["peak_gib"] for each in results["latih"])
        print(
            f"{ROWS} x {LENGTH} tokens, {share:.0%} trained: latih {sorted(speed['latih'])[middle]:.0f} tokens/s at "
            f"{peak:.1f} GiB, transformers + PEFT {sorted(speed['peft'])[middle]:.0f} at "
            f"{max(each['peak_gib'] for each in results['peft']):.1f} GiB, ratio {ratios[middle]:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
