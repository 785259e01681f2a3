"""The outside world as small Protocols; flows wires the implementations, stages only see these.

A `Protocol` here is a seam: several implementations exist, and tests put a real loopback service or a small
deterministic one behind it. Nothing here opens a connection or a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from engine.core.schema import Failure, ModelRef, Timing, TraceStep

if TYPE_CHECKING:  # numpy costs a tenth of a second, which commands that only look must not pay
    from engine.core.geometry import Box, Floats, Image, Mask

# ---------------------------------------------------------------- the web


@dataclass(frozen=True, slots=True)
class Fetched:
    """A response body. `url` is the final address, `headers` have lower-case names, `status` is 200 to 299."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    from_cache: bool = False


class Fetcher(Protocol):
    """Guarded HTTP GET: robots, pacing, limits, private addresses, retries and cache are its business.

    Raises `engine.web.FetchError` (with a `Code`) when this URL cannot be had, `TransientError` when the
    whole network is at fault.
    """

    async def fetch(self, url: str, *, kind: Literal["feed", "page", "image", "api"]) -> Fetched: ...


@dataclass(frozen=True, slots=True)
class TextHit:
    """A document found by a search: `published` is aware UTC or None if unknown."""

    url: str
    title: str
    text: str
    published: datetime | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class ImageHit:
    """An image found by a search; `image` is decoded, upright RGB."""

    url: str
    caption: str
    image: Image
    published: datetime | None = None
    score: float = 0.0


class Search(Protocol):
    """Text and image search. `until` bounds the publication date (exclusive); undated hits must not pass it.
    URLs in `blocked` are never returned, nor are their variants."""

    name: str

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]: ...

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]: ...


# ---------------------------------------------------------------- language models


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request: a system and a user text, images as encoded bytes (JPEG or PNG), and the JSON schema wanted.

    `purpose` names the stage in the ledger, it does not change the reply.
    """

    system: str
    user: str
    schema: Mapping[str, object] | None = None
    schema_name: str = "reply"
    images: tuple[bytes, ...] = ()
    max_tokens: int = 1024
    temperature: float = 0.0
    purpose: str = ""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete reply. `data` is the decoded object when a schema was asked for.

    `status` tells apart what must not be mixed: only "ok" may become a sample. "too_long" means that the request
    does not fit the model's context: the caller shortens it and asks again.
    """

    status: Literal["ok", "refused", "truncated", "filtered", "empty", "invalid", "error", "too_long"]
    text: str = ""
    data: Mapping[str, object] | None = None
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    from_cache: bool = False
    detail: str = ""


class ChatModel(Protocol):
    """A chat model behind an endpoint. Raises `TransientError`, `QuotaExhausted`, `BudgetSpent`, `ConfigError`."""

    name: str

    async def complete(self, request: ChatRequest) -> ChatReply: ...


@dataclass(frozen=True, slots=True)
class TextVectors:
    """Unit vectors of texts, (N, D) float32 and in order, and what they cost this run."""

    vectors: Floats
    tokens: int = 0
    usd: float = 0.0


class TextEmbedder(Protocol):
    """Texts to unit vectors; cosine similarity is the dot product. Raises as `ChatModel` does."""

    name: str

    async def embed(self, texts: Sequence[str]) -> TextVectors: ...


class Meter(Protocol):
    """Pays for the calls of one service that has a price per call. Raises `BudgetSpent` before a call, not after."""

    async def hold(self) -> None:
        """Set a call's price aside before it is made."""
        ...

    async def settle(self, *, answered: bool, seconds: float) -> None:
        """After the call: an answered one is paid, another only counted."""
        ...


# ---------------------------------------------------------------- vision


@dataclass(frozen=True, slots=True)
class Detection:
    """A candidate box for a phrase, score 0 to 1."""

    box: Box
    score: float
    phrase: str


@dataclass(frozen=True, slots=True)
class DetectRequest:
    """An image, the phrases to look for, and per phrase pictures of the wanted thing if there are any.

    Detectors that know words ignore `exemplars`; the portable one needs them for things.
    """

    image: Image
    phrases: tuple[str, ...]
    exemplars: Mapping[str, tuple[Image, ...]] = field(default_factory=dict)


class Detector(Protocol):
    """Finds candidate boxes. Returns one list per request, in order, scores descending."""

    name: str

    def detect(self, requests: Sequence[DetectRequest]) -> list[list[Detection]]: ...

    def model(self) -> ModelRef: ...


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A mask (H, W) with the model's own quality estimate and its stability, both 0 to 1 (1.0 if unknown)."""

    mask: Mask
    score: float = 1.0
    stability: float = 1.0


#: Points (x, y) in pixels that lie on a thing.
Points = Sequence[tuple[float, float]]


class MaskModel(Protocol):
    """Boxes to masks. One list per image, aligned with its boxes; the image is encoded once. `points` may hold points
    on the thing for each box (aligned with the boxes, an entry may be empty)."""

    name: str

    def segment(self, image: Image, boxes: Sequence[Box], *, points: Sequence[Points] = ()) -> list[Segmentation]: ...

    def model(self) -> ModelRef: ...


class Embedder(Protocol):
    """Images to unit vectors, shape (N, D) float32; cosine similarity is the dot product."""

    name: str

    def embed(self, images: Sequence[Image]) -> Floats: ...

    def model(self) -> ModelRef: ...


class References(Protocol):
    """Pictures of a named entity, from the retrieval seam; an empty tuple when there are none."""

    def of(self, name: str, *, aliases: Sequence[str] = ()) -> tuple[Image, ...]: ...


# ---------------------------------------------------------------- evaluation


@dataclass(frozen=True, slots=True)
class EvalItem:
    """What a segmenter may see of a sample: never the answer, never the mask.

    `cutoff` is the last instant of which retrieval may know; `blocked` are URLs it must not read.
    """

    sample_id: str
    question: str
    images: tuple[Image, ...]
    cutoff: datetime | None = None
    blocked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Segmented:
    """One item's result: per image a mask or a failure (exactly one of the two is None)."""

    masks: tuple[Mask | None, ...]
    failures: tuple[Failure | None, ...] = ()
    answer: str | None = None
    text: str = ""
    trace: tuple[TraceStep, ...] = ()
    timings: tuple[Timing, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentRequest:
    """An image and the prompt for it, in the words the segmenter is to see."""

    image: Image
    prompt: str


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """A mask or a failure, and the text the model said, if any."""

    mask: Mask | None
    failure: Failure | None = None
    text: str = ""
    score: float = 1.0


@runtime_checkable
class Segmenter(Protocol):
    """Question and image to mask. A failure is a value with its kind, never an empty mask."""

    name: str

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]: ...

    def models(self) -> tuple[ModelRef, ...]: ...


class Blobs(Protocol):
    """Content-addressed bytes of a home directory."""

    def put(self, data: bytes, ext: str) -> str: ...

    def get(self, sha256: str, ext: str = "") -> bytes: ...
