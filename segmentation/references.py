"""Reference pictures of named entities from a folder: one sub-folder per entity, with pictures and a `names.json`.

    references/
      grace-hopper/names.json    {"name": "Grace Hopper", "aliases": ["Rear Admiral Hopper"], "type": "person"}
      grace-hopper/portrait.jpg

Pictures are opened on demand and kept for the last few entities. What they are compared with is not known here.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from engine.core.errors import ConfigError
from engine.core.geometry import Image
from engine.core.images import ImageError, open_image
from engine.core.store.files import sha256_file

NAMES = "names.json"
SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif", ".tif", ".tiff"})


class _Names(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    aliases: tuple[str, ...] = ()
    type: Literal["person", "product"] = "person"
    published: str = ""


class FolderReferences:
    """The `References` of a folder. Raises `ConfigError` for a folder that is not there or a broken `names.json`."""

    KEPT: ClassVar[int] = 64
    MOST: ClassVar[int] = 12

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise ConfigError(f"[annotate] references = {path}: there is no such folder")
        self.path = path
        self._folders: dict[str, Path] = {}
        for file in sorted(path.glob(f"*/{NAMES}")):
            names = _read(file)
            for name in (names.name, *names.aliases):
                self._folders.setdefault(_fold(name), file.parent)
        self._kept: OrderedDict[Path, tuple[Image, ...]] = OrderedDict()

    def of(self, name: str, *, aliases: Sequence[str] = ()) -> tuple[Image, ...]:
        """At most `MOST` pictures, by file name; empty for a name that is not there."""
        folder = next((self._folders[key] for told in (name, *aliases) if (key := _fold(told)) in self._folders), None)
        if folder is None:
            return ()
        if folder in self._kept:
            self._kept.move_to_end(folder)
            return self._kept[folder]
        pictures = []
        for path in sorted(item for item in folder.iterdir() if item.suffix.lower() in SUFFIXES)[: self.MOST]:
            try:
                pictures.append(open_image(path.read_bytes()).pixels)
            except ImageError as error:
                raise ConfigError(f"the reference picture {path} cannot be used: {error.detail}") from error
        self._kept[folder] = tuple(pictures)
        while len(self._kept) > self.KEPT:
            self._kept.popitem(last=False)
        return self._kept[folder]


def folder_digest(path: Path) -> str:
    """sha256 over the names and contents of the pictures and name files, for a stage's key; "" for no folder."""
    if not path.is_dir():
        return ""
    digest = hashlib.sha256()
    for file in sorted(path.glob("*/*")):
        if file.is_file() and (file.name == NAMES or file.suffix.lower() in SUFFIXES):
            digest.update(f"{file.relative_to(path).as_posix()} {sha256_file(file)}\n".encode())
    return digest.hexdigest()


def _read(file: Path) -> _Names:
    try:
        return _Names.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigError(f'{file} is not {{"name": ..., "aliases": [...], "type": "person"}}: {error}') from error


def _fold(name: str) -> str:
    """A name without case, accents and double spaces."""
    plain = unicodedata.normalize("NFKD", name)
    return " ".join("".join(char for char in plain if not unicodedata.combining(char)).casefold().split())
