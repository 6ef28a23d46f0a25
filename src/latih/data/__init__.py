"""Data: trajectories and tasks in files, the places that rows come from, and packages of the Python index."""

from latih.data.settings import DataSettings
from latih.data.tasks import read_tasks, write_tasks
from latih.data.trajectories import read_trajectories, write_trajectories

__all__ = ["DataSettings", "read_tasks", "read_trajectories", "write_tasks", "write_trajectories"]
