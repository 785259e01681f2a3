from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ConfigError
from engine.core.images import encode_png
from segmentation.references import FolderReferences, folder_digest


def folder(root: Path, slug: str, *, pictures: int = 1, **names: object) -> Path:
    place = root / slug
    place.mkdir(parents=True)
    (place / "names.json").write_text(json.dumps({"name": slug, "type": "person", **names}), encoding="utf-8")
    for index in range(pictures):
        (place / f"{index:02d}.png").write_bytes(encode_png(np.full((8, 9, 3), index, np.uint8)))
    return place


def test_names_and_aliases_find_pictures(tmp_path: Path) -> None:
    folder(tmp_path, "hopper", name="Grace Hopper", aliases=["Admiral Hopper"], pictures=2)
    folder(tmp_path, "ibsen", name="Sigurd Ibsén", pictures=1)
    references = FolderReferences(tmp_path)
    assert [int(item[0, 0, 0]) for item in references.of("Grace Hopper")] == [0, 1]
    assert len(references.of("ADMIRAL  hopper")) == 2
    assert len(references.of("Sigurd Ibsen")) == 1
    assert len(references.of("Nobody", aliases=["Admiral Hopper"])) == 2
    assert references.of("Nobody") == ()


def test_at_most_so_many_pictures(tmp_path: Path) -> None:
    folder(tmp_path, "many", pictures=FolderReferences.MOST + 3)
    assert len(FolderReferences(tmp_path).of("many")) == FolderReferences.MOST


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        FolderReferences(tmp_path / "nowhere")
    place = folder(tmp_path, "odd", alias="typo")
    with pytest.raises(ConfigError, match=r"names\.json"):
        FolderReferences(tmp_path)
    (place / "names.json").write_text('{"name": "odd"}', encoding="utf-8")
    (place / "00.png").write_bytes(b"no picture")
    with pytest.raises(ConfigError, match="cannot be used"):
        FolderReferences(tmp_path).of("odd")


def test_the_digest_follows_pictures_and_names_only(tmp_path: Path) -> None:
    place = folder(tmp_path / "refs", "one")
    before = folder_digest(tmp_path / "refs")
    (place / "notes.txt").write_text("not a picture", encoding="utf-8")
    assert folder_digest(tmp_path / "refs") == before
    (place / "01.png").write_bytes(encode_png(np.zeros((4, 4, 3), np.uint8)))
    assert folder_digest(tmp_path / "refs") != before
    assert folder_digest(tmp_path / "none") == ""
