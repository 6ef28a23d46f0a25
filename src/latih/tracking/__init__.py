"""Tracking: metrics of every step to files and services, and events for whoever watches."""

from latih.tracking.events import Events, Silent, Told, named_progress
from latih.tracking.logger import Logger, RunInfo, find_loggers, loggers
from latih.tracking.settings import TrackingSettings
from latih.tracking.tracker import Tracker

__all__ = [
    "Events",
    "Logger",
    "RunInfo",
    "Silent",
    "Told",
    "Tracker",
    "TrackingSettings",
    "find_loggers",
    "loggers",
    "named_progress",
]
