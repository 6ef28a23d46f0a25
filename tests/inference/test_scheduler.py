"""The rows of the cache: how their number grows."""

import asyncio
from pathlib import Path

import torch

from latih.core.sampling import SamplingParams
from latih.inference.cache import KVCache
from latih.inference.requests import Request
from latih.inference.scheduler import Scheduler
from latih.inference.settings import EngineSettings
from latih.models.config import DecoderConfig
from tests.tiny import tiny_model


async def test_rows_grow_by_a_quarter_at_least_and_no_further_than_the_budget(tmp_path: Path) -> None:
    config = DecoderConfig.from_folder(tiny_model(tmp_path))
    settings = EngineSettings(kv_cache_gb=150 * 64 * 256 / 2**30, context_length=64)  # 150 rows of 64 tokens
    scheduler = Scheduler(KVCache(config, settings, torch.float32, torch.device("cpu")))
    future: asyncio.Future = asyncio.get_running_loop().create_future()
    grown = []
    for first in range(160):
        scheduler.waiting.append(Request([first], SamplingParams(), 64, future, str))
        scheduler.admit()
        if scheduler.cache.rows not in grown:
            grown.append(scheduler.cache.rows)
    assert grown == [16, 32, 48, 64, 80, 112, 144, 150]  # in steps of 16
    assert (len(scheduler.active), len(scheduler.waiting)) == (150, 10)
