"""Evaluation: how good a policy is, on episodes it never trained on, and how sure that is."""

from latih.evaluation.agent import Agent, AgentSettings
from latih.evaluation.baseline import BASELINES, baseline_seatings
from latih.evaluation.evaluate import evaluate
from latih.evaluation.intervals import Estimate, student, wilson
from latih.evaluation.players import URLS, check_player, frozen, roles_of, seated, seatings
from latih.evaluation.result import EPISODES, RESULT, EvalResult, estimate
from latih.evaluation.settings import EvaluationSettings
from latih.evaluation.source import Source, find_source

__all__ = [
    "BASELINES",
    "EPISODES",
    "RESULT",
    "URLS",
    "Agent",
    "AgentSettings",
    "Estimate",
    "EvalResult",
    "EvaluationSettings",
    "Source",
    "baseline_seatings",
    "check_player",
    "estimate",
    "evaluate",
    "find_source",
    "frozen",
    "roles_of",
    "seated",
    "seatings",
    "student",
    "wilson",
]
