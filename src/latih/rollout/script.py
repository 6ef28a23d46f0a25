"""Scripted play: an env's own policy answers in the sampler's place, for demonstrations and baselines."""

import random
from collections.abc import Sequence as SequenceOf

from latih.core import Renderer, Sample, SamplerError, SamplingParams, StopReason
from latih.rollout.episode import EnvEpisode


class Script:
    """A sampler for one episode: it "samples" the reply that the env's scripted policy gives, with logprob 0.

    All else (harness, rendering, recording, parsing, the bounds of the episode) is that of any other rollout, so the
    turns are what the policy would have been shown and would have to say. Every model call is answered by the same
    scripted policy: a harness that asks the model for more than actions has no use for it.
    """

    policy_version = 0

    def __init__(self, episode: EnvEpisode, policy: str, renderer: Renderer, context_length: int) -> None:
        self.episode = episode
        self.policy = policy
        self.renderer = renderer
        self.context_length = context_length

    async def sample(self, prompt_ids: SequenceOf[int], params: SamplingParams) -> Sample:
        """The scripted reply. Raises EnvError where the env fails, SamplerError where the reply is too long."""
        reply = await self.episode.scripted(self.policy, random.Random(params.seed))
        ids = self.renderer.reply(reply)
        if len(ids) > params.max_tokens:
            raise SamplerError(
                f"the scripted policy {self.policy!r} says {len(ids)} tokens where the policy may say "
                f"{params.max_tokens}: raise rollout.sampling.max_tokens"
            )
        return Sample(ids=ids, logprobs=[0.0] * len(ids), stop_reason=StopReason.STOP, policy_version=0)

    def forget(self) -> None:
        """Nothing is kept."""
