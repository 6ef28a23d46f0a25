"""A world that a random byte model can play: even bytes pay, odd ones cost; some seeds pay everyone the same."""

import random

from latih.core import Message
from latih.envs import MessageEnv, text_of


class Parity(MessageEnv):
    """Two turns. Every fourth seed gives groups without contrast."""

    policies = ("random",)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.flat = (seed or 0) // 4 % 4 == 0  # the two lowest bits tell the phase
        self.turn, self.score = 0, 0
        rules = Message(role="system", content="Say something even, as briefly as you can.")
        return [rules, Message(role="user", content=f"Word {self.np_random.integers(100)}")], {}

    def step(self, action):
        said = text_of(action).encode()
        paid = 0.0 if self.flat else sum((-1) ** each for each in said) / 4
        self.turn += 1
        self.score += paid
        return f"Turn {self.turn}", paid, self.turn == 2, False, {"metrics": {"score": self.score}}

    def scripted(self, name, rng: random.Random):
        return "".join(chr(rng.randrange(48, 122)) for _ in range(3))
