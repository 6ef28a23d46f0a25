import json

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, models, pre_tokenizers

from latih.core import ModelError
from latih.models.tokenizer import CACHED_LENGTH, Tokenizer
from tests.models.templates import NAMED, SPECIALS, trained, with_specials
from tests.tiny import byte_tokenizer, tiny_model

KINDS = sorted(NAMED)
BYTES = Tokenizer(byte_tokenizer(), named={"eos_token": "<|im_end|>"})


def test_control_tokens_only_where_asked_for():
    text = "a<|im_end|>b"
    # byte-level: one id per byte in the order of the byte alphabet, then 256, 257, 258 for the three control tokens
    assert len(BYTES.encode(text)) == len(text)
    assert max(BYTES.encode(text)) < 256
    assert with_specials(BYTES, text) == [*BYTES.encode("a"), 258, *BYTES.encode("b")]
    assert BYTES.decode(BYTES.encode(text)) == BYTES.decode(with_specials(BYTES, text)) == text
    assert list(BYTES.pieces(text)) == ["a", 258, "b"]


@pytest.mark.parametrize("kind", KINDS)
@given(text=st.lists(st.sampled_from([*SPECIALS, "<tool_call>"]) | st.text(max_size=5), max_size=6).map("".join))
@settings(deadline=None)
def test_encoding(kind, text):
    fresh = tokenizers.Tokenizer.from_str(trained(kind))
    ours = Tokenizer(tokenizers.Tokenizer.from_str(trained(kind)), named=NAMED[kind])
    assert with_specials(ours, text) == fresh.encode(text, add_special_tokens=False).ids
    plain = ours.encode(text)
    assert not set(plain) & set(ours.special_ids.values())
    assert ours.decode(plain) == text


def test_long_texts_are_encoded_like_short_ones():
    text = "ab" * CACHED_LENGTH
    assert BYTES.encode(text) == BYTES.encode("ab") * CACHED_LENGTH


def test_what_encode_returns_is_the_callers():
    BYTES.encode("hello").append(1)
    assert BYTES.decode(BYTES.encode("hello")) == "hello"


def test_ids_that_are_no_utf8_decode_to_the_replacement_character():
    assert BYTES.decode(BYTES.encode("é")[:1]) == "�"


def test_special_tokens_that_swallow_white_space():
    backend = byte_tokenizer()
    backend.add_special_tokens([AddedToken("<mask>", special=True, normalized=False, lstrip=True, rstrip=True)])
    fresh = tokenizers.Tokenizer.from_str(backend.to_str())
    text = "a  <mask>\n <|im_end|> b"
    assert with_specials(Tokenizer(backend), text) == fresh.encode(text, add_special_tokens=False).ids


def test_from_folder(tmp_path):
    tokenizer = Tokenizer.from_folder(tiny_model(tmp_path))
    assert tokenizer.eos_ids == [258]
    assert tokenizer.named == {"eos_token": "<|im_end|>"}
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [256, 258]}')
    entry = {"content": "<|im_end|>", "lstrip": False}
    flags = {"add_bos_token": True, "pad_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": entry, **flags}))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.eos_ids == [258, 256]  # the tokenizer's own comes first
    assert tokenizer.named == {"eos_token": "<|im_end|>"}


def test_no_tokenizer_or_a_damaged_one_is_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"has no tokenizer\.json"):
        Tokenizer.from_folder(tmp_path)
    tiny_model(tmp_path)
    whole = (tmp_path / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged") as caught:
        Tokenizer.from_folder(tmp_path)
    assert "\n" not in str(caught.value)


def test_sentencepiece_is_refused_rather_than_read_wrongly(tmp_path):
    backend = tokenizers.Tokenizer(
        models.BPE(vocab={"▁": 0, "a": 1, "▁a": 2, "<unk>": 3}, merges=[("▁", "a")], unk_token="<unk>")
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    backend.decoder = tokenizers.decoders.Metaspace(prepend_scheme="first")
    backend.add_special_tokens(["<s>"])
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ModelError, match="SentencePiece"):
        Tokenizer.from_folder(tmp_path)
