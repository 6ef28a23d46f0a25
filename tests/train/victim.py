"""A process that trains a tiny model, and may kill itself on the way: `victim.py FOLDER new|resume [CALL NUMBER]`.

CALL is `update` (in the middle of a step, before the given optimizer update) or `write` (in the middle of a save, when
the optimizer's file has been cut short).
"""

import os
import signal
import sys
from pathlib import Path

import torch

from latih.runs import Run
from latih.train import checkpoint
from latih.train.config import resolve, validate
from latih.train.learner import Learner
from latih.train.loop import train
from tests.tiny import tiny_model


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(call: str, number: int) -> None:
    count = 0
    update, write = Learner.update, checkpoint.write_tensors

    def dying_update(self, lr):
        nonlocal count
        count += 1
        if count == number:
            die()
        return update(self, lr)

    def dying_write(path, tensors):
        nonlocal count
        count += 1
        write(path, tensors)
        if count == number:
            os.truncate(path, path.stat().st_size // 2)
            die()

    if call == "update":
        Learner.update = dying_update
    else:
        checkpoint.write_tensors = dying_write


def main() -> None:
    folder, how, *fault = Path(sys.argv[1]), *sys.argv[2:]
    torch.set_num_threads(1)
    if fault:
        arm(fault[0], int(fault[1]))
    if how == "resume":
        run = Run.open("run", folder, write=True)
        train(validate(run.config), run, resume=True)
        return
    model = tiny_model(folder / "model")
    env = Path(__file__).with_name("parity_env.py")
    config = resolve(
        f"{env}:Parity",
        [
            f"trainer.policy.model={{path: {model}, dtype: float32, device: cpu}}",
            f"run={{folder: {folder}, name: run}}",
            "deterministic=true",
            "trainer.steps=5",
            "trainer.minibatches=2",
            "trainer.micro_batch_tokens=300",
            "trainer.optimizer={lr: 1e-2, schedule: cosine, warmup_steps: 1}",
            "trainer.warm_start={steps: 2, games: 3, lr: 1e-2}",
            "trainer.checkpoint={every: 2, keep: 1}",
            "rollout={groups: 3, group_size: 4, sampling: {max_tokens: 6}}",
            "evaluation={episodes: 6, every: 2}",
        ],
    )
    run = Run.create(config.run, config.as_dict())
    train(config, run)


if __name__ == "__main__":
    main()
