"""Small made-up samples for tests of the snapshot stage: pictures are drawn, names are invented."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from PIL import Image as PilImage

from engine.core.config import SnapshotSection
from engine.core.masks import encode_rle
from engine.core.schema import (
    Annotation,
    Article,
    Binding,
    BindingEvidence,
    BlindAnswer,
    BoxRecord,
    Check,
    DateWitness,
    Entity,
    GateFigure,
    ImageAnnotation,
    ImageRef,
    ModelRef,
    Question,
    Sample,
    SnapshotManifest,
    Window,
    Writer,
)
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.snapshot.build import build
from engine.snapshot.samples import join

WINDOW: Window = parse_window("2026-W48")
CONFIG = SnapshotSection(contact="removal@nest.example")
NAMES = ("Ilse Brandvik", "Tomás Okafor", "Skarv Line Two", "Mirelle Dubòs", "Halden 9")


def picture(seed: int, *, width: int = 64, height: int = 48, noise: bool = False) -> np.ndarray:
    """A smooth or noisy coloured picture, upright RGB (H, W, 3) uint8, different for every seed."""
    rng = np.random.default_rng(seed)
    if noise:
        return rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8)
    small = rng.integers(0, 256, size=(4, 5, 3), dtype=np.uint8)
    return np.asarray(PilImage.fromarray(small).resize((width, height), PilImage.Resampling.BICUBIC))


def jpeg(pixels: np.ndarray, *, quality: int = 90, exif: bytes = b"", comment: bytes = b"") -> bytes:
    out = io.BytesIO()
    PilImage.fromarray(pixels).save(out, "JPEG", quality=quality, exif=exif, comment=comment)
    return out.getvalue()


def records(
    count: int,
    blobs: BlobStore,
    *,
    seed: int = 0,
    portable: bool = False,
    writer: str = "llm",
    images_per_article: int = 1,
    width: int = 64,
    height: int = 48,
    noise: bool = False,
) -> tuple[list[Article], list[Question], list[Annotation]]:
    """`count` articles with one question and its masks each."""
    articles, questions, annotations = [], [], []
    for n in range(count):
        number = seed + n
        refs = []
        for k in range(images_per_article):
            data = jpeg(picture(number * 10 + k, width=width, height=height, noise=noise))
            sha256 = blobs.put(data, "jpg")
            refs.append(
                ImageRef(
                    sha256=sha256,
                    ext="jpg",
                    url=f"https://pics.herald.example/{number}/{k}.jpg",
                    width=width,
                    height=height,
                    caption=f"{NAMES[number % 5]}, left, in hall {number}",
                    credit="N. Photographer / Herald",
                    rights="all rights reserved",
                    phash=f"{int(sha256[:16], 16):016x}",
                )
            )
        published = datetime(2026, 11, 23, 8, 30, tzinfo=UTC) + timedelta(hours=7 * (number % 20))
        name = NAMES[number % 5]
        kind = "product" if name in NAMES[2::2] else "person"
        articles.append(
            Article(
                id=f"a{number:05d}",
                url=f"https://www.herald.example/{number}?utm=1",
                canonical_url=f"https://www.herald.example/{number}",
                title=f"Hall {number} opens | «gala» <b>",
                text=f"{name} opened hall {number}.",
                language="en",
                publisher="Herald",
                source="herald",
                source_type="feed",
                domain=("Economics", "Technology", "Politics", "Entertainment", "Sports", "Society")[number % 6],
                published_at=published,
                date_certain=True,
                date_witnesses=(
                    DateWitness(kind="jsonld", value=published, raw=published.isoformat()),
                    DateWitness(kind="url", value=published.replace(hour=0, minute=0), precision="day", zone="none"),
                ),
                images=tuple(refs),
            )
        )
        questions.append(
            Question(
                id=f"q{number:05d}",
                article_id=f"a{number:05d}",
                article_url=f"https://www.herald.example/{number}",
                images=tuple(ref.sha256 for ref in refs),
                question=f"Who or what opened hall {number}?",
                answer=name,
                aliases=(name.split()[-1],),
                entity_type=kind,
                kind="novel" if kind == "product" else "emerging",
                phrase=kind,
                position="left",
                caption=refs[0].caption,
                entities=(
                    Entity(name=name, type=kind, phrase=kind, position="left"),
                    Entity(name="Somebody Else", type="person", phrase="person", order=1),
                ),
                evidence=f"{name} opened hall {number}.",
                writer=Writer(name=writer, version="1", model="gpt-x-2026-01-01" if writer == "llm" else ""),
                checks=(Check(name="answer_in_source", passed=True),),
                blind=(BlindAnswer(model="mllm-a", with_image=True, answer="nobody", matches=number % 2 == 0),),
            )
        )
        annotations.append(
            Annotation(
                id=f"m{number:05d}",
                question_id=f"q{number:05d}",
                images=tuple(_mask(ref, number + k) for k, ref in enumerate(refs)),
                models=(ModelRef(role="detector", name="groundingdino", version="swin_t", weights_sha256="ab" * 32),),
                portable=portable,
            )
        )
    return articles, questions, annotations


def _mask(ref: ImageRef, number: int) -> ImageAnnotation:
    mask = np.zeros((ref.height, ref.width), dtype=bool)
    left, top = number % (ref.width // 2), number % (ref.height // 2)
    mask[top : top + ref.height // 3, left : left + ref.width // 4] = True
    box = BoxRecord(
        x1=left,
        y1=top,
        x2=left + ref.width // 4,
        y2=top + ref.height // 3,
        score=0.75,
        phrase="person",
    )
    return ImageAnnotation(
        image=ref.sha256,
        width=ref.width,
        height=ref.height,
        rle=encode_rle(mask),
        candidates=(box,),
        binding=Binding(
            candidate=0,
            rule="single",
            margin=1.0,
            evidence=(BindingEvidence(kind="count", candidate=0, score=1.0, detail="one box"),),
        ),
        gates=(GateFigure(name="stability", value=0.9, threshold=0.7),),
    )


def samples(count: int, blobs: BlobStore, **options: object) -> list[Sample]:
    """`count` samples through the real join."""
    found = join(*records(count, blobs, **options))  # type: ignore[arg-type]
    assert all(isinstance(item, Sample) for item in found)
    return [item for item in found if isinstance(item, Sample)]


def snapshot(
    folder: Path,
    count: int = 4,
    *,
    config: SnapshotSection = CONFIG,
    hub_repo: str = "news/{name}",
    earlier: Sequence[Path] = (),
    key: str = "0123456789abcdef",
    **options: object,
) -> SnapshotManifest:
    """Build a snapshot folder of `count` made-up samples; their blobs lie beside it."""
    blobs = BlobStore(folder.parent / "blobs")
    folder.mkdir(parents=True)
    return build(
        folder,
        samples(count, blobs, **options),
        window=WINDOW,
        config=config,
        hub_repo=hub_repo,
        blobs=blobs,
        key=key,
        earlier=earlier,
    )
