"""Sealed weeks: pictures, questions and commitments to the answers now, the answers and masks some weeks later.

What is withheld at first is everything from which an answer or a mask follows, or by which a guess could be tried:
answers, aliases, masks, boxes, evidence, gates, captions, titles, addresses of articles and pictures, and the rows'
own ids, which are digests of the address and the answer. Names are easily guessed, so nothing that is published is a
plain hash of them: the one secret is a random key of 256 bits, and with it

    sealed id   = first 16 hex digits of HMAC-SHA256(key, "id " + id)
    commitment  = HMAC-SHA256(key, JSON list of id, answer, sha256 of each mask's PNG bytes)

The first push holds sealed ids, commitments and the sha256 of the key; the second one the key and the rows. A
publisher who wanted to change an answer afterwards would have to find a collision of SHA-256.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import Field

from engine.core.errors import RefusedError
from engine.core.schema import Record, SnapshotManifest, canonical_json
from engine.snapshot.names import CARD, DATA, SEAL
from engine.snapshot.parquet import ShardWriter
from engine.snapshot.revise import read_rows
from engine.snapshot.rows import Row, file_value

#: Tag of the first push; `datasets` reads a repository at it like at any other.
TAG = "sealed"
KEY_BYTES = 32


class Seal(Record):
    """`seal.json`. `key` is "" until the answers are published; `commitments` are by sealed id."""

    name: str
    window: str
    revision: str
    opens: date
    rows: int
    key_sha256: str
    commitments: dict[str, str] = Field(default_factory=dict)
    key: str = ""


def sealed_id(key: bytes, name: str) -> str:
    """The id under which a row is published before its answer is."""
    return hmac.new(key, f"id {name}".encode(), "sha256").hexdigest()[:16]


def commitment(key: bytes, name: str, answer: str, masks: Sequence[bytes]) -> str:
    """64 hex digits that bind answer and masks (PNG bytes) of a row and tell nothing of them without the key."""
    told = [name, answer, [hashlib.sha256(mask).hexdigest() for mask in masks]]
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def write_sealed(
    folder: Path, out: Path, *, key: bytes, opens: date, hub_repo: str, contact: str, license: str
) -> Seal:
    """Write what is published first of a snapshot folder into the empty folder `out`.

    Raises `RefusedError` for a snapshot without pixels, since addresses of pictures lead to their captions.
    """
    from engine.snapshot.manifest import read_manifest

    manifest = read_manifest(folder)
    if manifest.publish != "bytes":
        raise RefusedError(
            f"{manifest.name} holds addresses of pictures, which lead to their captions: for sealed weeks set "
            '[snapshot] publish = "bytes"'
        )
    rows = sorted(_sealed_rows(folder, key), key=lambda row: str(row[0]["id"]))
    with ShardWriter(out / DATA, features()) as writer:
        for row, _ in rows:
            writer.write(row, sum(len(item["bytes"]) for item in row["images"]))
    seal = Seal(
        name=manifest.name,
        window=manifest.window,
        revision=manifest.revision,
        opens=opens,
        rows=len(rows),
        key_sha256=hashlib.sha256(key).hexdigest(),
        commitments={str(row["id"]): told for row, told in rows},
    )
    (out / SEAL).write_bytes(to_bytes(seal))
    (out / CARD).write_text(_card(manifest, seal, hub_repo, contact, license), encoding="utf-8", newline="\n")
    return seal


def opened(seal: Seal, key: bytes) -> Seal:
    """The seal with its key. Raises ValueError for another key than the one promised."""
    if hashlib.sha256(key).hexdigest() != seal.key_sha256:
        raise ValueError("the key is not the one whose digest was published")
    return seal.model_copy(update={"key": key.hex()})


def to_bytes(seal: Seal) -> bytes:
    """The content of `seal.json`."""
    return (canonical_json(seal.model_dump(mode="json")) + "\n").encode()


def from_bytes(data: bytes) -> Seal:
    """A seal from the content of `seal.json`. Raises ValueError."""
    return Seal.read(json.loads(data))


def features() -> Any:
    """Columns of the sealed rows, as `datasets` features."""
    from datasets import Features, Image, List, Value

    text = {name: Value("string") for name in ("id", "question")}
    return Features({**text, "images": List(Image()), "image_credits": List(Value("string"))})


def _sealed_rows(folder: Path, key: bytes) -> list[tuple[dict[str, Any], str]]:
    found = []
    for row in read_rows(folder):
        name = sealed_id(key, row.id)
        images = [file_value(name, n, "jpg", item["bytes"]) for n, item in enumerate(row.default["images"])]
        masks = [item["bytes"] for item in row.default["annotations"]]
        shown = {
            "id": name,
            "question": row.default["question"],
            "images": images,
            "image_credits": [_credit(text, row) for text in row.provenance["image_credits"]],
        }
        found.append((shown, commitment(key, row.id, row.default["answer"], masks)))
    return found


def _credit(text: str, row: Row) -> str:
    """The photographer's credit, unless it holds a word of any name in the picture."""
    words = {word.casefold() for name in _names(row.default, row.provenance) for word in name.split() if len(word) > 2}
    return "" if any(word in text.casefold() for word in words) else text


def _names(default: Mapping[str, Any], provenance: Mapping[str, Any]) -> list[str]:
    entities = [entity["name"] for entity in provenance["entities"]]
    return [default["answer"], *provenance["aliases"], *entities]


def _card(manifest: SnapshotManifest, seal: Seal, hub_repo: str, contact: str, license: str) -> str:
    removal = f"To have a picture removed, write to {contact}." if contact else ""
    return f"""---
pretty_name: {manifest.name} (sealed)
license: {license}
tags: [news, benchmark, reasoning-segmentation]
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---

# {manifest.name}, sealed until {seal.opens.isoformat()}

{seal.rows} questions about named people and products in news pictures. **Answers and masks are not published yet**:
they follow on {seal.opens.isoformat()} or soon after, as revision `{manifest.revision}` of this repository. Until then
a method can be run and its predictions handed in; those received before are marked as sealed in the report.

`seal.json` binds the answers and masks now. Its `commitments` are HMAC-SHA256 values under a random key of 256 bits,
whose sha256 is `{seal.key_sha256}`. With the answers the key is
published, and anybody can check that nothing was changed meanwhile. Titles, captions, addresses and the rows' final ids
are withheld as well, since an answer would follow from them.

```python
from datasets import load_dataset

rows = load_dataset("{hub_repo}", split="train", revision="{TAG}")
```

| Field | Type | What it holds |
|---|---|---|
| `id` | string | the row's id until then; `seal.json` commits to it |
| `question` | string | asks for one entity without naming it |
| `images` | list of image | JPEG without metadata |
| `image_credits` | list of string | as published, empty where the credit holds a name that is in the picture |

The pictures belong to their owners. {removal}
"""
