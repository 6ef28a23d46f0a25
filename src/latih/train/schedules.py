"""Schedules: the learning rate at each training step."""

import math

from latih.train.settings import OptimizerSettings


def learning_rate(settings: OptimizerSettings, step: int, steps: int) -> float:
    """At training step `step` of `steps`, counted from 0.

    It grows linearly over `warmup_steps`, reaching `lr` on the first step after them, then follows the schedule: it
    would reach 0 at step `steps`, which is never trained.
    """
    if step < settings.warmup_steps:
        return settings.lr * (step + 1) / (settings.warmup_steps + 1)
    if settings.schedule == "constant":
        return settings.lr
    done = (step - settings.warmup_steps) / max(1, steps - settings.warmup_steps)
    if settings.schedule == "linear":
        return settings.lr * max(0.0, 1 - done)
    return settings.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
