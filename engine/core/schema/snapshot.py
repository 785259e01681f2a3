"""Records of the snapshot stage: a row with its origin, and the manifest of a published folder."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from engine.core.schema.annotation import Annotation, ModelRef
from engine.core.schema.base import Record, Value
from engine.core.schema.news import Article, ImageRef
from engine.core.schema.question import Question
from engine.core.schema.rejected import FunnelStep


class Sample(Record):
    """One row before it is written: question, images and masks with everything that led to them."""

    id: str
    article: Article
    images: tuple[ImageRef, ...]
    question: Question
    annotation: Annotation


class FileDigest(Value):
    """A file of the snapshot folder: path relative to the folder with forward slashes, sha256, bytes."""

    path: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int


class Erratum(Value):
    """A correction made by a later revision."""

    revision: str
    sample_id: str
    change: str
    because: str


class Overlap(Value):
    """How many images, articles, stories and answers of this snapshot were already in an earlier one.

    `articles` are known by their address, `stories` are articles whose text repeats one of the earlier snapshot's, at
    whatever address. Where the earlier texts were not at hand, `stories` is None and is not written at all.
    """

    snapshot: str
    images: int = 0
    near_images: int = 0
    articles: int = 0
    stories: int | None = None
    answers: int = 0

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = handler(self)
        if told.get("stories") is None:
            told.pop("stories", None)
        return told


class SnapshotManifest(Record):
    """`snapshot.json`: what is in the folder, how it came about, and what it replaces.

    `digest` is the sha256 of this record's canonical JSON with `digest` empty, so that the file vouches for itself
    as `files` do for the others. `publish` says whether the rows hold pictures or only their addresses. `hub_repo`,
    `config` (the [snapshot] section), `measured` and `sources_policy` are what the card was made with, so that a
    later revision is made alike.
    """

    name: str
    window: str
    revision: str = "r1"
    key: str
    rows: int
    images: int
    splits: dict[str, int]
    files: tuple[FileDigest, ...]
    funnel: tuple[FunnelStep, ...] = ()
    models: tuple[ModelRef, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    portable: bool = False
    template_questions: int = 0
    supersedes: str | None = None
    errata: tuple[Erratum, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    tombstones: tuple[str, ...] = ()
    publish: Literal["bytes", "urls"] = "bytes"
    hub_repo: str = ""
    config: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, str] = Field(default_factory=dict)
    sources_policy: str = ""
    digest: str = ""
