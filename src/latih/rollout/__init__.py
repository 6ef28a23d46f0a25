"""Rollouts: episodes become trajectories, with the exact tokens that were sampled."""

from latih.rollout.episode import EnvEpisode
from latih.rollout.gate import Gate
from latih.rollout.metrics import constant_reward, summarize
from latih.rollout.model import BoundedSampler, Completion, RecordedModel
from latih.rollout.plain import ChatSampler, MessageRenderer
from latih.rollout.plan import PHASES, GroupSpec, Phase, env_seed, plan
from latih.rollout.recorder import Recorder, UnknownCompletion
from latih.rollout.rollouts import Rollouts, TooManyErrors
from latih.rollout.script import Script
from latih.rollout.seats import Player
from latih.rollout.settings import OWN, PAST, POLICY, PlayerSettings, RolloutSettings
from latih.rollout.tasks import TaskSets, held_out, load_tasks, read_rows, trying_out

__all__ = [
    "OWN",
    "PAST",
    "PHASES",
    "POLICY",
    "BoundedSampler",
    "ChatSampler",
    "Completion",
    "EnvEpisode",
    "Gate",
    "GroupSpec",
    "MessageRenderer",
    "Phase",
    "Player",
    "PlayerSettings",
    "RecordedModel",
    "Recorder",
    "RolloutSettings",
    "Rollouts",
    "Script",
    "TaskSets",
    "TooManyErrors",
    "UnknownCompletion",
    "constant_reward",
    "env_seed",
    "held_out",
    "load_tasks",
    "plan",
    "read_rows",
    "summarize",
    "trying_out",
]
