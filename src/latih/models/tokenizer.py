"""Text to token ids and back; control tokens only where the caller asks for them."""

import functools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from latih.core.errors import ModelError, first_line

CACHED_TEXTS, CACHED_LENGTH = 8192, 512
"""How many texts are remembered with their ids, and of how many characters at most."""


class Tokenizer:
    """A model's tokenizer.

    Control tokens ("specials", such as <|im_end|>) are never made from text: what an observation says cannot end a
    turn. `pieces` is for a template's own.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        named: dict[str, str] | None = None,
        eos_ids: Iterable[int] = (),
    ) -> None:
        """`named` holds the template's variables: bos_token, eos_token and so on."""
        backend.encode_special_tokens = True  # control tokens found in text are spelt out
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self.named = named or {}
        added = backend.get_added_tokens_decoder()
        self.special_ids: dict[str, int] = {token.content: i for i, token in added.items() if token.special}
        # longest first, as the tokenizer itself prefers; a few tokens swallow the white space beside them
        ordered = sorted((token for token in added.values() if token.special), key=lambda token: -len(token.content))
        self.special_pattern = re.compile("|".join(re.escape(token.content) for token in ordered) or "(?!)")
        """Finds control tokens in text."""
        spaced = (r"\s*" * token.lstrip + re.escape(token.content) + r"\s*" * token.rstrip for token in ordered)
        self._splitter = re.compile("|".join(spaced) or "(?!)")
        eos = self.named.get("eos_token")
        first = [self.special_ids.get(eos, backend.token_to_id(eos))] if eos else []
        self.eos_ids: list[int] = list(dict.fromkeys([*(i for i in first if i is not None), *eos_ids]))
        """The ids that end a text; the tokenizer's own eos_token comes first."""
        self._cached = functools.lru_cache(CACHED_TEXTS)(self._encode)

    @classmethod
    def from_folder(cls, folder: Path) -> "Tokenizer":
        """Read tokenizer.json, the names in tokenizer_config.json and the end ids in generation_config.json.

        Raises ModelError where tokenizer.json is missing or damaged.
        """
        file = folder / "tokenizer.json"
        if not file.is_file():
            raise ModelError(f"{folder} has no tokenizer.json: save the model's fast tokenizer there")
        try:
            backend = tokenizers.Tokenizer.from_file(str(file))
        except Exception as exc:  # the library raises plain Exception
            raise ModelError(f"{file} is damaged ({first_line(exc)}): get it again") from exc
        _check_boundaries(backend, file)
        config = read_json(folder / "tokenizer_config.json")
        # an entry is the token's text or an object around it; "add_bos_token" and the like are flags
        entries = {key: value for key, value in config.items() if key.endswith("_token")}
        texts = {key: value.get("content") if isinstance(value, dict) else value for key, value in entries.items()}
        named = {key: value for key, value in texts.items() if isinstance(value, str)}
        for place in (folder / "generation_config.json", folder / "config.json"):
            if (eos := read_json(place).get("eos_token_id")) is not None:
                break
        ids = eos if isinstance(eos, list) else [] if eos is None else [eos]
        if not all(isinstance(each, int) for each in ids):
            raise ModelError(f"{place} gives {eos!r} as eos_token_id, which is a number or a list of them")
        return cls(backend, named=named, eos_ids=ids)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, in which control tokens are spelt out."""
        return list(self._cached(text) if len(text) <= CACHED_LENGTH else self._encode(text))

    def pieces(self, text: str) -> Iterator[str | int]:
        """The stretches of text between control tokens, and the ids of those."""
        at = 0
        for match in self._splitter.finditer(text):
            if match.start() > at:
                yield text[at : match.start()]
            found = match.group()
            yield self.special_ids[found if found in self.special_ids else found.strip()]
            at = match.end()
        if at < len(text):
            yield text[at:]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, control tokens included; bytes that are no UTF-8 become U+FFFD."""
        return self._backend.decode(list(ids), skip_special_tokens=False)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._backend.encode(text, add_special_tokens=False).ids)


def _check_boundaries(backend: tokenizers.Tokenizer, file: Path) -> None:
    """Raises ModelError where text is changed, or depends on what stands before a control token (SentencePiece)."""
    backend.no_padding()
    special = next((token.content for token in backend.get_added_tokens_decoder().values() if token.special), "")
    for text in ("a", " a"):
        alone = backend.encode(text, add_special_tokens=False).ids
        after = backend.encode(special + text, add_special_tokens=False).ids
        if backend.decode(alone) != text or after[len(after) - len(alone) :] != alone:
            raise ModelError(
                f"{file} adds or drops spaces, as SentencePiece does: only byte-level tokenizers are supported"
            )


def read_json(file: Path) -> dict[str, Any]:
    """The object in `file`, empty where there is no file. Raises ModelError where it is damaged."""
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise ModelError(f"{file} is damaged ({exc}): get it again") from exc
    if not isinstance(content, dict):
        raise ModelError(f"{file} does not hold a JSON object: get it again")
    return content
