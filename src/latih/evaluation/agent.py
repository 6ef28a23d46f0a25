"""The agent: a policy and the harness that plays it, loaded from a run, a checkpoint or a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, cast

from pydantic import ValidationError

from latih.core import ConfigError, Env, Harness, Task, Trajectory, first_line
from latih.core.plugins import load_module
from latih.core.schema import Record
from latih.evaluation.source import Source, find_source
from latih.harnesses import HarnessSettings
from latih.inference.cache import capacity
from latih.inference.engine import Engine
from latih.inference.settings import EngineSettings
from latih.models.chat import Renderer
from latih.models.checkpoint import load_checkpoint
from latih.models.config import DecoderConfig
from latih.models.device import pick_device, pick_dtype
from latih.models.policy import Policy, PolicySettings
from latih.models.source import resolve_model
from latih.models.tokenizer import Tokenizer
from latih.rollout import GroupSpec, Rollouts, RolloutSettings
from latih.tracking import Told


class AgentSettings(Record):
    """How an agent computes and plays. The names are those of a run's configuration."""

    policy: PolicySettings = PolicySettings()
    harness: HarnessSettings = HarnessSettings()
    rollout: RolloutSettings = RolloutSettings()
    inference: EngineSettings = EngineSettings()
    deterministic: bool = False

    @classmethod
    def of_run(cls, config: dict[str, Any]) -> "AgentSettings":
        """The settings that a run was trained under. Raises ConfigError where they are damaged."""
        try:
            for place in config.get("plugins", []):
                load_module(place)
            return cls(
                policy=config["trainer"]["policy"],
                harness=config.get("harness", {}),
                rollout=config["rollout"],
                inference=config["inference"],
                deterministic=config.get("deterministic", False),
            )
        except (KeyError, TypeError, ValidationError) as exc:
            raise ConfigError(f"the run's config.yaml is damaged: {first_line(exc)}") from exc


class Agent:
    """Plays episodes. Close it, or use it as a context manager.

    `with Agent.load("runs/tic_tac_toe-…") as agent: trajectory = await agent.play(env, seed=1)`
    """

    def __init__(
        self,
        policy: Policy,
        tokenizer: Tokenizer,
        renderer: Renderer,
        settings: AgentSettings,
        harness: Harness | None = None,
        name: str = "",
    ) -> None:
        """`harness` plays instead of the one that the settings name; `name` says where the weights come from.

        Raises ConfigError where there is no such harness, or the memory is too small.
        """
        self.policy = policy
        self.renderer = renderer
        self.settings = settings
        self.harness = harness or settings.harness.make()
        self.name = name
        self.engine = Engine(policy, tokenizer.decode, settings.inference)

    @classmethod
    def load(
        cls,
        path: str | Path | Source,
        settings: AgentSettings | None = None,
        *,
        harness: Harness | None = None,
        told: Told = lambda *_: None,
    ) -> "Agent":
        """Load a run's last checkpoint, a checkpoint, or a model; `settings` default to the run's own.

        `told` hears of the progress where the model has to be fetched. Raises LatihError where there is none, or it is
        damaged, or of another model.
        """
        source = path if isinstance(path, Source) else find_source(path)
        settings = settings or (AgentSettings.of_run(source.config) if source.config else AgentSettings())
        harness = harness or settings.harness.make()
        # the run's own model, unless the settings name another place for it
        folder = resolve_model(settings.policy.model.path if source.checkpoint else source.model, told)
        tokenizer = Tokenizer.from_folder(folder)
        renderer = Renderer.from_folder(folder, tokenizer)
        model, lora = settings.policy.model, settings.policy.lora
        where = pick_device(model.device)  # what does not fit is told before the weights are read
        capacity(DecoderConfig.from_folder(folder), settings.inference, pick_dtype(model.dtype, where))
        trained = source.checkpoint is not None
        policy = Policy.load(folder, lora=lora, train=trained, dtype=model.dtype, device=model.device)
        if source.checkpoint is not None:
            load_checkpoint(policy, source.checkpoint)
            policy.refresh(source.version)
        return cls(policy, tokenizer, renderer, settings, harness, str(source))

    def rollouts(self, make_env: Callable[[], Env], name: str) -> Rollouts:
        """What plays many episodes of an env with this agent."""
        return Rollouts(
            self.settings.rollout,
            make_env,
            self.harness,
            self.renderer,
            self.engine,
            env=name,
            deterministic=self.settings.deterministic,
        )

    async def play(self, env: Env, seed: int = 0, task: Task | None = None) -> Trajectory:
        """Play one episode of `env`, which stays open. The same seed gives the same episode.

        Raises LatihError where the episode fails.
        """
        spec = GroupSpec(id=f"play/{seed}", seed=seed, size=1, sampling_seed=seed, task=task)
        player = self.rollouts(lambda: cast(Env, _Open(env)), type(env).__name__)
        [group] = await player.play([spec])
        return group.trajectories[0]

    def close(self) -> None:
        """Stop the engine."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Open:
    """An env whose owner closes it."""

    def __init__(self, env: Env) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def close(self) -> None:
        pass
