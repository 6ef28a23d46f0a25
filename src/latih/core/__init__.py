"""The vocabulary: what every room of latih speaks. Standard library and pydantic only."""

from latih.core.errors import (
    ConfigError,
    ContextFull,
    EnvError,
    GraderError,
    HarnessError,
    LatihError,
    ModelError,
    RolloutError,
    SamplerError,
    SandboxError,
    ToolError,
    boundary,
)
from latih.core.messages import ImagePart, Message, Part, Role, TextPart, ToolCall, ToolSchema
from latih.core.protocols import (
    ChatModel,
    Env,
    Episode,
    Harness,
    Sampler,
    StepResult,
    Trainer,
)
from latih.core.registry import Registry, nearest
from latih.core.sampling import Sample, SamplingParams, StopReason
from latih.core.seeds import derive_seed
from latih.core.trajectories import ErrorRecord, Group, Sequence, Task, Trajectory, Turn

__all__ = [
    "ChatModel",
    "ConfigError",
    "ContextFull",
    "Env",
    "EnvError",
    "Episode",
    "ErrorRecord",
    "GraderError",
    "Group",
    "Harness",
    "HarnessError",
    "ImagePart",
    "LatihError",
    "Message",
    "ModelError",
    "Part",
    "Registry",
    "Role",
    "RolloutError",
    "Sample",
    "Sampler",
    "SamplerError",
    "SamplingParams",
    "SandboxError",
    "Sequence",
    "StepResult",
    "StopReason",
    "Task",
    "TextPart",
    "ToolCall",
    "ToolError",
    "ToolSchema",
    "Trainer",
    "Trajectory",
    "Turn",
    "boundary",
    "derive_seed",
    "nearest",
]
