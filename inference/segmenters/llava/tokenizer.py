"""Token ids as the models were trained on them: LLaMA's SentencePiece under the rules of an older transformers.

Text is split at the added tokens ([SEG], <im_start>, <im_end>); white space on the sides that touch one is lost; each
piece goes through SentencePiece by itself. No setting of today's tokenizers gives these ids, and a few wrong ids in
front of the answer are enough to change it. In legacy mode every piece starts with a word-start mark; otherwise only
the first does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError

#: Stands for the image in a sequence of ids; it is no word of the model.
IMAGE = -200
IMAGE_MARK = "<image>"
SEG, IM_START, IM_END = "[SEG]", "<im_start>", "<im_end>"
_START = "\u2581"


class Tokenizer:
    """Ids of prompts and text of replies. Read one with `load`."""

    def __init__(self, pieces: Any, added: Mapping[str, int], *, legacy: bool = True) -> None:
        self._pieces = pieces
        self._added = dict(added)
        self._names = {index: name for name, index in added.items()}
        self._legacy = legacy
        self.bos, self.eos = int(pieces.bos_id()), int(pieces.eos_id())
        known = (*self._added, "<s>", "</s>", "<unk>")
        self._special = {"<s>": self.bos, "</s>": self.eos, "<unk>": int(pieces.unk_id())}
        # Longer names first, so that no name hides a longer one.
        self._split = re.compile("(" + "|".join(re.escape(k) for k in sorted(known, key=len, reverse=True)) + ")")

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """From a checkpoint's folder (tokenizer.model, added tokens, legacy flag). Raises `ConfigError`."""
        path = folder / "tokenizer.model"
        if not path.is_file():
            raise ConfigError(f"{folder} has no tokenizer.model: copy it from the released checkpoint's folder")
        try:
            import sentencepiece
        except ImportError as error:
            raise ConfigError(
                "LISA, SESAME and READ need sentencepiece: pip install 'nest-data-engine[gpu]'"
            ) from error
        pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))
        config = _json(folder / "tokenizer_config.json")
        added = {str(k): int(v) for k, v in _json(folder / "added_tokens.json").items()}
        for index, token in config.get("added_tokens_decoder", {}).items():
            if int(index) >= pieces.vocab_size():
                added[str(token["content"])] = int(index)
        missing = [name for name in (SEG, IM_START, IM_END) if name not in added]
        if missing:
            raise ConfigError(
                f"the tokenizer in {folder} has no {', '.join(missing)}: it is not that of a LISA, SESAME or READ model"
            )
        return cls(pieces, added, legacy=bool(config.get("legacy", True)))

    @property
    def seg(self) -> int:
        """Id of the token that asks for a mask."""
        return self._added[SEG]

    @property
    def im_start(self) -> int:
        return self._added[IM_START]

    def encode(self, text: str) -> list[int]:
        """Ids of a text without image, with the start mark in front."""
        ids = [self.bos]
        parts = self._split.split(text)
        for number, part in enumerate(parts):
            if part in self._added:
                ids.append(self._added[part])
            elif part in self._special:
                ids.append(self._special[part])
            elif part:
                # Only the three added tokens swallow the blanks beside them, the end marks don't.
                before = parts[number - 1] if number else ""
                after = parts[number + 1] if number + 1 < len(parts) else ""
                stripped = part.lstrip() if before in self._added else part
                stripped = stripped.rstrip() if after in self._added else stripped
                if stripped:
                    ids += self._plain(stripped, first=number == 0)
        return ids

    def encode_with_image(self, text: str) -> list[int]:
        """Ids of a prompt with one image mark, for which `IMAGE` stands. Raises ValueError for another number."""
        parts = text.split(IMAGE_MARK)
        if len(parts) != 2:
            raise ValueError(f"a prompt has one {IMAGE_MARK}, found {len(parts) - 1}")
        return [*self.encode(parts[0]), IMAGE, *self.encode(parts[1])[1:]]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids: added tokens stand between blanks, start, end and padding are left out."""
        parts: list[str] = []
        plain: list[int] = []

        def flush() -> None:
            if plain:
                parts.append(str(self._pieces.decode(plain)).strip())
                plain.clear()

        for index in ids:
            if index in self._names:
                flush()
                parts.append(self._names[index])
            elif index > self._special["<unk>"] and index not in (self.bos, self.eos):
                plain.append(index)
        flush()
        return " ".join(part for part in parts if part)

    def _plain(self, text: str, *, first: bool) -> list[int]:
        if self._legacy or first or text.startswith(" "):
            return [int(i) for i in self._pieces.encode(text)]
        tokens = list(self._pieces.encode(text, out_type=str))
        if tokens and tokens[0].startswith(_START):
            tokens = ([tokens[0][1:]] if len(tokens[0]) > 1 else []) + tokens[1:]
        return [int(self._pieces.piece_to_id(token)) for token in tokens]


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from error
    return dict(found)
