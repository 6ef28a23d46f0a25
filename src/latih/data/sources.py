"""Where rows come from: a file, a folder, a pattern, or one of these on the Hugging Face hub."""

import glob
import re
from pathlib import Path

from latih.core import LatihError
from latih.core.pip import extra

SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json")
EXAMPLE = "hf://datasets/openai/gsm8k/main/train-*.parquet"
_HUB = re.compile(r"hf://datasets/(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w.-]+))?(?:/(?P<inside>.+))?")


def find_files(source: str | Path) -> list[Path]:
    """The files that `source` names, in the order of their names: themselves, or those of a folder or a pattern.

    `hf://datasets/OWNER/NAME[@REVISION]/PLACE` names them in a data set of the hub, from where they are fetched.
    Raises LatihError where there are none.
    """
    if str(source).startswith("hf://"):
        return _from_hub(str(source))
    return _local(Path(source).expanduser(), str(source))


def _local(path: Path, source: str) -> list[Path]:
    if path.is_dir():
        files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
        if not files:
            raise LatihError(f"folder {source} holds no .parquet, .jsonl or .json file: tasks are read from these")
        return files
    if path.suffix not in SUFFIXES:
        raise LatihError(f"{source} is neither .parquet nor .jsonl nor .json, nor a folder: tasks are read from these")
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    if not (files := sorted(Path(each) for each in glob.glob(str(path)))):
        raise LatihError(f"no file matches {source}")
    return files


def _from_hub(source: str) -> list[Path]:
    found = _HUB.fullmatch(source)
    if found is None:
        raise LatihError(f"{source}: write hf://datasets/OWNER/NAME/FILE, such as {EXAMPLE}")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise LatihError(f"{source} is on the Hugging Face hub: {extra('hub')}") from None
    name, revision, inside = found["name"], found["revision"], found["inside"]
    wanted = [inside, f"{inside}/*"] if inside else [f"*{suffix}" for suffix in SUFFIXES]
    try:
        folder = snapshot_download(name, repo_type="dataset", revision=revision, allow_patterns=wanted)
    except Exception as exc:  # the client has a dozen kinds, from four libraries
        line = str(exc).strip().partition("\n")[0]
        raise LatihError(f"cannot fetch {source} from the Hugging Face hub: {line}") from exc
    return _local(Path(folder) / (inside or ""), source)
