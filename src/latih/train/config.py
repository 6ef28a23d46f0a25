"""The configuration of a run: every room's settings in one tree, from a recipe and dotted overrides."""

import difflib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from latih.core.errors import ConfigError
from latih.core.plugins import load_module
from latih.core.registry import nearest
from latih.core.schema import Record
from latih.data import DataSettings
from latih.envs import EnvSettings, find
from latih.envs.registry import builtin_names, canonical
from latih.evaluation import EvaluationSettings, roles_of
from latih.harnesses import HarnessSettings
from latih.inference.settings import EngineSettings
from latih.rollout import OWN, PAST, POLICY, PlayerSettings, RolloutSettings
from latih.runs import RunSettings
from latih.tracking import TrackingSettings
from latih.train.overrides import merged, override, read_tree
from latih.train.settings import TrainerSettings


class Config(Record):
    """Everything that a run depends on. The same config and seed give the same run."""

    seed: int = 0
    """Every random choice of the run derives from it."""
    deterministic: bool = False
    """Batches are put together by trajectory index, not by arrival: a resumed run equals an unbroken one exactly."""
    plugins: list[str] = []
    """Files or modules of one's own, imported first: they register what the settings name, such as an advantage
    estimator, a harness or a logger."""
    env: EnvSettings
    data: DataSettings = DataSettings()
    roles: dict[str, PlayerSettings] = {}
    """By the role's name: `roles.o=past` is short for `roles.o.player=past`. The policy plays the roles not named."""
    harness: HarnessSettings = HarnessSettings()
    rollout: RolloutSettings = RolloutSettings()
    inference: EngineSettings = EngineSettings()
    trainer: TrainerSettings = TrainerSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    tracking: TrackingSettings = TrackingSettings()
    run: RunSettings = RunSettings()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for YAML; `validate` takes it back."""
        return self.model_dump(mode="json")


def recipes() -> list[str]:
    """The names of the recipes that come with latih."""
    return sorted(each.name for each in _shelf().iterdir() if each.joinpath("recipe.yaml").is_file())


def resolve(target: str, overrides: Sequence[str] = (), *, long: bool = False) -> Config:
    """The config of a recipe's name, a YAML file, or an environment (which takes the defaults).

    `overrides` are `dotted.key=value`, each value read as YAML; `long` adds the recipe's long form. Plugins that they
    name are imported first, so that `target` may be an environment of theirs. Raises ConfigError.
    """
    load_plugins(override({}, overrides))
    return validate(override(_tree(target, long), overrides))


def validate(tree: dict[str, Any]) -> Config:
    """The config that plain data makes. Raises ConfigError: unknown keys with the nearest, wrong types by name."""
    load_plugins(tree)
    env = tree.get("env")
    if isinstance(env, dict) and isinstance(env.get("id"), str):
        find(env["id"])  # its file may register what the settings name, too
    try:
        config = Config.model_validate(tree)
    except ValidationError as exc:
        errors = exc.errors(include_url=False)
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        unknown = [each for each in errors if each["type"] == "extra_forbidden"]
        raise ConfigError(_explain((unknown or errors)[0]) + more) from None
    _check(config)
    return config


def load_plugins(tree: dict[str, Any]) -> None:
    """Import the plugins of a config that is not validated yet. Raises ConfigError."""
    plugins = tree.get("plugins")
    for place in plugins if isinstance(plugins, list) else []:
        load_module(str(place))


def dotted_keys(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Every key that may be set, as `trainer.optimizer.lr`."""
    for name, field in model.model_fields.items():
        yield prefix + name
        for each in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(each, type) and issubclass(each, BaseModel):
                yield from dotted_keys(each, f"{prefix}{name}.")


def _shelf() -> Any:
    return resources.files("latih") / "recipes"


def _tree(target: str, long: bool) -> dict[str, Any]:
    if "/" in target and ":" not in target:  # a Gymnasium id stands for the name, and so for the recipe
        target = canonical(target)
    if target in recipes():
        folder = _shelf() / target
        tree = read_tree(folder / "recipe.yaml")
        if not long:
            return tree
        if not (folder / "long.yaml").is_file():
            raise ConfigError(f"recipe {target!r} has no long form: leave --long out")
        return merged(tree, read_tree(folder / "long.yaml"))
    if long:
        raise ConfigError(f"--long is for recipes, and {target!r} is none: {nearest(target, recipes())}")
    if target.endswith((".yaml", ".yml")):
        return read_tree(Path(target))
    if target.endswith(".py"):
        raise ConfigError(f"{target} is a file: say which class of it, as in {target}:MyEnv")
    if ":" not in target and "/" not in target and target not in builtin_names():
        try:
            find(target)  # what a user's own code registered
        except ConfigError:
            if Path(f"{target}.py").exists():
                raise ConfigError(f"{target}.py is a file: say which class of it, as in {target}.py:MyEnv") from None
            known = {*recipes(), *builtin_names()}
            raise ConfigError(f"unknown recipe or environment {target!r}: {nearest(target, known)}") from None
    return {"env": {"id": target}}


_NO_REFERENCE = "there is no reference model, and no penalty on the distance to one: leave it out"
ABSENT = {
    "max_waiting": "it is a setting no more: take its line out of the file",
    "beta": _NO_REFERENCE,
    "kl_coef": _NO_REFERENCE,
    "kl_loss_coef": _NO_REFERENCE,
    "use_kl_loss": _NO_REFERENCE,
    "kl_penalty_coef": _NO_REFERENCE,
}
"""Why there is no such setting, by its last part: those that an earlier version had, or that others have."""
ELSEWHERE = {
    "num_generations": "rollout.group_size",
    "n_samples_per_prompt": "rollout.group_size",
    "groups_per_step": "rollout.groups",
    "train_batch_size": "rollout.groups",
    "max_completion_length": "rollout.sampling.max_tokens",
    "max_generate_length": "rollout.sampling.max_tokens",
    "max_prompt_length": "inference.context_length",
    "learning_rate": "trainer.optimizer.lr",
    "max_steps": "trainer.steps",
    "num_iterations": "trainer.minibatches",
    "per_device_train_batch_size": "trainer.micro_batch_tokens",
    "micro_train_batch_size_per_gpu": "trainer.micro_batch_tokens",
    "advantage_estimator": "trainer.algorithm.advantage",
    "loss_type": "trainer.algorithm.aggregation",
    "loss_reduction": "trainer.algorithm.aggregation",
    "policy_loss_type": "trainer.algorithm.surrogate",
    "importance_sampling_level": "trainer.algorithm.ratio",
    "epsilon": "trainer.algorithm.clip_low",
    "eps_clip_low": "trainer.algorithm.clip_low",
    "epsilon_high": "trainer.algorithm.clip_high",
    "eps_clip_high": "trainer.algorithm.clip_high",
    "entropy_coef": "trainer.algorithm.entropy_bonus",
    "mask_truncated_completions": "trainer.algorithm.overlong",
    "lora_alpha": "trainer.policy.lora.alpha",
    "model_name": "trainer.policy.model.path",
    "model_name_or_path": "trainer.policy.model.path",
    "report_to": "tracking.loggers",
    "project_name": "tracking.project",
    "run_name": "run.name",
    "output_dir": "run.folder",
    "save_steps": "trainer.checkpoint.every",
    "ckpt_interval": "trainer.checkpoint.every",
    "eval_steps": "evaluation.every",
    "eval_interval": "evaluation.every",
}
"""What TRL, SkyRL and ART call a setting, by its last part: those of them that no likeness of words would find."""


def _explain(error: ErrorDetails) -> str:
    key = ".".join(str(each) for each in error["loc"])
    if error["type"] == "extra_forbidden":
        last = str(error["loc"][-1])
        if last in ABSENT:
            return f"unknown setting {key}: {ABSENT[last]}"
        if last in ELSEWHERE:
            return f"unknown setting {key}: it is {ELSEWHERE[last]!r} here"
        known = list(dotted_keys())
        # the right name at the wrong place is the likeliest slip
        same = [each for each in known if each.rpartition(".")[2] == last]
        inside = {each for each in known if each.rpartition(".")[0] == key.rpartition(".")[0]}
        near = difflib.get_close_matches(key, inside, n=1, cutoff=0.8)
        return f"unknown setting {key}: {nearest(key, near or same or known)}"
    if error["type"] == "missing":
        return f"setting {key} is missing"
    if error["type"] in ("model_type", "dict_type"):
        return f"{key}={error['input']!r}: expected a mapping of settings"
    message = error["msg"].removeprefix("Value error, ")
    expected = message.replace("Input should be", "expected").partition(", unable to")[0]
    return f"{key}={error['input']!r}: {expected}"


def _check(config: Config) -> None:
    """What no single room can see."""
    _check_roles(config)
    if config.trainer.steps and config.data.train and not config.data.eval:
        raise ConfigError("data.train is set and data.eval is not: name held-out rows to evaluate on")
    if config.trainer.steps and config.rollout.group_size < 2:
        raise ConfigError("rollout.group_size=1: one trajectory has no baseline to learn from; set 2 or more")
    if config.trainer.steps and config.rollout.sampling.temperature == 0:
        raise ConfigError("rollout.sampling.temperature=0 is greedy: all games of a group would be the same; set 1")


def _check_roles(config: Config) -> None:
    roles = roles_of(config.env)
    for role in config.roles:
        if role not in roles:
            known = nearest(role, roles) if roles else "it has no roles to be played by different players"
            raise ConfigError(f"roles.{role}: {config.env.id} has no role {role!r}: {known}")
    if roles and all(role in config.roles and config.roles[role].player != POLICY for role in roles):
        raise ConfigError("roles: no role is played by `policy`, the one that is trained: leave one of them out")
    if config.evaluation.opponent.player in (OWN, PAST):
        raise ConfigError("evaluation.opponent: name one that stays as it is, so that evaluations can be compared")
