import json

import gguf
import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file
from tokenizers import pre_tokenizers

from latih.core import ModelError
from latih.models.gguf import convert_gguf, unpermute
from tests.models.templates import SMOLLM2
from tests.tiny import tiny_model

HIDDEN, HEADS, KV_HEADS, LAYERS = 64, 4, 2, 2
CONTROLS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order: within a head, row i of the first half stands beside row i of the second."""
    size = rows.shape[0] // heads
    order = [head * size + half * (size // 2) + i for head in range(heads) for i in range(size // 2) for half in (0, 1)]
    return rows[order]


def write_gguf(file, weights, *, architecture="llama", pre="smollm", scaled=False, quantize=True, leave_out=""):
    writer = gguf.GGUFWriter(file, architecture)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [*CONTROLS, *alphabet, "ab", "Ġab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["a b", "Ġ ab"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(SMOLLM2)
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
    }
    for name, tensor in weights.items():
        short = name.removesuffix(".weight")
        if short.startswith("model.layers."):
            _, _, layer, rest = short.split(".", 3)
            target = f"blk.{layer}.{names[rest]}.weight"
        else:
            target = f"{names[short]}.weight"
        if target == leave_out:
            continue
        values = tensor.numpy()
        if "q_proj" in name or "k_proj" in name:
            values = permuted(values, HEADS if "q_proj" in name else KV_HEADS)
        if quantize and "ffn_up" in target:
            packed = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(target, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            writer.add_tensor(target, values)
    if scaled:
        writer.add_tensor("rope_freqs.weight", np.ones(8, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture
def weights(tmp_path):
    folder = tiny_model(
        tmp_path / "hf", layers=LAYERS, hidden=HIDDEN, heads=HEADS, kv_heads=KV_HEADS, vocab=261, tied=False
    )
    return load_file(folder / "model.safetensors")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "made"
    made.mkdir()
    return made


def test_unpermute_undoes_llama_cpps_order():
    # one head of four rows: its pairs (0, 2) and (1, 3) stand side by side in the file
    rows = np.array([[0.0], [2.0], [1.0], [3.0]], np.float32)
    assert unpermute(rows, 1)[:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("tied", [True, False])
def test_conversion(tmp_path, folder, weights, tied):
    if tied:
        del weights["lm_head.weight"]
    convert_gguf(write_gguf(tmp_path / "m.gguf", weights), folder)
    made = load_file(folder / "model.safetensors")
    assert made.keys() == weights.keys()
    for name, tensor in weights.items():
        if "up_proj" in name:  # 8-bit blocks of 32: half a step of max / 127, then bfloat16's 2^-9
            assert (made[name].float() - tensor).abs().max() < tensor.abs().max() * (0.5 / 127 + 2**-8)
        else:
            assert torch.equal(made[name], tensor.to(torch.bfloat16)), name
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["tie_word_embeddings"] is tied
    assert (config["rms_norm_eps"], config["rope_theta"], config["vocab_size"]) == (1e-5, 10000.0, 261)
    assert (config["num_key_value_heads"], config["head_dim"], config["eos_token_id"]) == (2, 16, 2)


def test_transformers_reads_the_same_model(tmp_path, folder, weights):
    from transformers import AutoModelForCausalLM

    write_gguf(tmp_path / "m.gguf", weights)
    convert_gguf(tmp_path / "m.gguf", folder)
    ours = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).state_dict()
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="m.gguf", dtype=torch.float32).state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert torch.equal(ours[name], tensor.to(torch.bfloat16)), name


def test_the_tokenizer(tmp_path, folder, weights):
    convert_gguf(write_gguf(tmp_path / "m.gguf", weights), folder)
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    # digits one by one, merges only inside words, control tokens whole
    assert tokenizer.encode("ab ab12<|im_end|>").tokens == ["ab", "Ġab", "1", "2", "<|im_end|>"]
    assert tokenizer.encode("  ab").tokens == ["Ġ", "Ġab"]
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert (config["bos_token"], config["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    assert config["chat_template"] == SMOLLM2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"architecture": "mamba"}, "architecture 'mamba'"),
        ({"pre": "tekken"}, "pre-tokenizer 'tekken'"),
        ({"scaled": True}, "scales its rotary frequencies"),
        ({"leave_out": "blk.1.ffn_down.weight"}, r"no tensor blk\.1\.ffn_down\.weight"),
        ({"leave_out": "token_embd.weight"}, r"no tensor token_embd\.weight"),
    ],
)
def test_what_cannot_be_converted_is_refused(tmp_path, folder, weights, options, message):
    with pytest.raises(ModelError, match=message):
        convert_gguf(write_gguf(tmp_path / "m.gguf", weights, **options), folder)


def test_a_wrong_shape_is_refused(tmp_path, folder, weights):
    weights["model.norm.weight"] = torch.ones(3)
    with pytest.raises(ModelError, match=r"output_norm\.weight has shape \(3,\), expected \(64,\)"):
        convert_gguf(write_gguf(tmp_path / "m.gguf", weights), folder)


@pytest.mark.parametrize("keep", [0, 3, 100, 5000, -1000])
def test_a_cut_file_is_refused_in_one_line(tmp_path, folder, weights, keep):
    file = write_gguf(tmp_path / "m.gguf", weights)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelError, match="not a whole GGUF file") as caught:
        convert_gguf(file, folder)
    assert "\n" not in str(caught.value)
