"""One sample becomes one row of each config, as plain values ready for Arrow.

What a row holds is decided here; how it is written is in `parquet`, which columns there are in `features`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.core.config import SnapshotSection
from engine.core.images import ImageError
from engine.core.masks import decode_rle, encode_rle
from engine.core.protocols import Blobs
from engine.core.schema import Code, ImageAnnotation, Rejected, Sample, Stage
from engine.snapshot.pictures import Picture, publish, shrink
from engine.snapshot.plain_text import plain


@dataclass(frozen=True, slots=True)
class Row:
    """A row of every config. `default` and `provenance` are column name to value; `size_bytes` counts the pictures,
    masks and texts of `default`."""

    id: str
    default: dict[str, Any]
    provenance: dict[str, Any]
    size_bytes: int


def make_row(sample: Sample, *, blobs: Blobs, config: SnapshotSection) -> Row | Rejected:
    """The row of a sample, or why there is none: the picture cannot be opened, the mask is empty or does not fit,
    or the row stays too large at every step of the rule. Raises `TerminalError` if a blob is gone or damaged."""
    sources = [blobs.get(image.sha256, image.ext) for image in sample.images]
    try:
        pictures = [
            publish(data, decode_rle(found.rle), quality=config.jpeg_quality)
            for data, found in zip(sources, sample.annotation.images, strict=True)
        ]
    except ImageError as error:
        return _reject(sample, error.code, error.detail)
    except ValueError as error:
        return _reject(sample, Code.INTERNAL, str(error))
    try:
        small, step = shrink(pictures, sources, quality=config.jpeg_quality, limit_bytes=config.max_row_bytes)
    except ValueError as error:
        return _reject(sample, Code.ROW_TOO_LARGE, str(error))
    if not all(picture.mask.any() for picture in small):
        return _reject(sample, Code.MASK_EMPTY, step)
    provenance = _provenance(sample, small, step)
    # models write line breaks and worse, which 'nest verify' refuses
    asked, answer = plain(sample.question.question), plain(sample.question.answer)
    text = {"id": sample.id, "question": asked, "answer": answer}
    if config.publish == "bytes":
        default: dict[str, Any] = {
            **text,
            "images": [file_value(sample.id, n, "jpg", item.jpeg) for n, item in enumerate(small)],
            "annotations": [file_value(sample.id, n, "png", item.png) for n, item in enumerate(small)],
        }
        size = sum(item.size_bytes for item in small)
    else:
        default = {
            **text,
            "image_urls": provenance["image_urls"],
            "image_sha256": provenance["image_sha256"],
            "masks": provenance["masks"],
        }
        size = sum(len(mask["counts"]) + 300 for mask in provenance["masks"])
    return Row(sample.id, default, provenance, size + sum(len(value.encode()) for value in text.values()))


def file_value(name: str, number: int, ext: str, data: bytes) -> dict[str, Any]:
    """A picture as `datasets` keeps it: its bytes, and a base name, never a folder that a reader would look for."""
    return {"bytes": data, "path": f"{name}_{number}.{ext}"}


def _reject(sample: Sample, code: Code, detail: str) -> Rejected:
    parent = sample.article.canonical_url or sample.article.url
    return Rejected(item=sample.id, stage=Stage.SNAPSHOT, code=code, detail=detail, parent=parent)


def _provenance(sample: Sample, pictures: tuple[Picture, ...], step: str) -> dict[str, Any]:
    article, question, annotation = sample.article, sample.question, sample.annotation
    masks = [encode_rle(picture.mask) for picture in pictures]
    found = list(zip(annotation.images, pictures, strict=True))
    return {
        "id": sample.id,
        "article_url": article.url,
        "canonical_url": article.canonical_url or article.url,
        "title": article.title,
        "source": article.source,
        "source_type": article.source_type,
        "publisher": article.publisher,
        "language": article.language,
        "domain": article.domain,
        "term": article.term,
        "published_at": _second(article.published_at),
        "date_precision": article.date_precision,
        "date_certain": article.date_certain,
        "date_witnesses": [
            {**witness.model_dump(), "value": _second(witness.value)} for witness in article.date_witnesses
        ],
        "image_urls": [image.url for image in sample.images],
        "image_captions": [image.caption for image in sample.images],
        "image_credits": [image.credit for image in sample.images],
        "image_rights": [image.rights for image in sample.images],
        "image_phashes": [image.phash for image in sample.images],
        "image_sha256": [image.sha256 for image in sample.images],
        "image_published_sha256": [hashlib.sha256(picture.jpeg).hexdigest() for picture in pictures],
        "image_widths": [picture.width for picture in pictures],
        "image_heights": [picture.height for picture in pictures],
        "image_archive": [image.archive_material for image in sample.images],
        "shrunk": step,
        "entity_type": question.entity_type,
        "aliases": list(question.aliases),
        "question_kind": question.kind,
        "novelty": [
            # a model that names the entity without the news knows it: for that model it is emerging, else novel
            {**blind.model_dump(), "label": "emerging" if blind.matches else "novel"}
            for blind in question.blind
        ],
        "entities": [entity.model_dump(include={"name", "type", "phrase", "position"}) for entity in question.entities],
        "phrase": question.phrase,
        "position": question.position,
        "caption": question.caption,
        "evidence": question.evidence,
        "evidence_in": question.evidence_in,
        "writer": question.writer.model_dump(),
        "checks": [check.model_dump() for check in question.checks],
        "boxes": [_chosen(item, picture.scale) for item, picture in found],
        "masks": [{"size": list(rle.size), "counts": rle.counts} for rle in masks],
        "candidates": [
            [{**box.model_dump(), **_corners(box, picture.scale)} for box in item.candidates] for item, picture in found
        ],
        "bindings": [item.binding.model_dump() for item in annotation.images],
        "gates": [[gate.model_dump() for gate in item.gates] for item in annotation.images],
        "models": [model.model_dump() for model in annotation.models],
        "portable": annotation.portable,
    }


def _second(instant: datetime | None) -> datetime | None:
    # the column holds whole seconds; cutting here keeps what is written equal to what was told
    return instant.astimezone(UTC).replace(microsecond=0) if instant else None


def _corners(box: Any, scale: float) -> dict[str, float]:
    return {name: float(getattr(box, name)) * scale for name in ("x1", "y1", "x2", "y2")}


def _chosen(item: ImageAnnotation, scale: float) -> list[float]:
    if not 0 <= item.binding.candidate < len(item.candidates):
        return []
    return list(_corners(item.candidates[item.binding.candidate], scale).values())
