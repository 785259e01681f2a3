"""The pictures of a report: which samples are shown, and their thumbnails with masks, ready for the page.

Masks travel as run lengths at the thumbnail's size, row by row, beginning with the background, as base-36 numbers
separated by spaces; the page paints them. Cards come in chunks, so that the page decodes only what is looked at.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from engine.core.geometry import Image, Mask
from engine.core.images import encode_jpeg
from engine.core.masks import decode_rle
from engine.core.schema import Prediction, ScoreReport
from inference.benchmarks.base import Benchmark, BenchmarkSample
from inference.metrics.score import Truth
from inference.metrics.units import Ints, Reals

#: longer side of a thumbnail: large while there are few
THUMB_PX, FEW, FEW_PX = 360, 120, 720
QUALITY = 72
CHUNK = 24
TEXT_CHARS = 700
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Gallery:
    """`cards` are small and sit in the page at once; `chunks` hold the pictures and are decoded when needed."""

    cards: list[dict[str, Any]]
    chunks: list[list[dict[str, Any]]]
    left_out: int


def choose(report: ScoreReport, limit: int) -> list[int]:
    """Places of the samples to show, ascending: all, or the worst, the best, the most disputed and an even rest."""
    count = len(report.samples)
    if count <= limit:
        return list(range(count))
    chosen: dict[int, None] = {}
    quarter = max(1, limit // 4)
    ranked = _ranked(_mean_iou(report))
    disputed = _ranked(-_disagreement(report))
    for part in (ranked[:quarter], ranked[-quarter:], disputed[:quarter]):
        chosen.update(dict.fromkeys(part))
    for place in np.linspace(0, count - 1, limit).round().astype(int).tolist():
        if len(chosen) >= limit:
            break
        chosen[place] = None
    return sorted(chosen)[:limit]


def build(
    report: ScoreReport,
    benchmark: Benchmark,
    predictions: Mapping[str, Iterable[Prediction]],
    *,
    truths: Mapping[str, Truth] | None = None,
    limit: int,
) -> Gallery:
    """Thumbnails and masks of the chosen samples; every sample's images make one card each."""
    places = choose(report, limit)
    wanted = {report.samples[place].id: place for place in places}
    found: dict[str, dict[str, Prediction]] = {
        name: {one.sample_id: one for one in stream if one.sample_id in wanted} for name, stream in predictions.items()
    }
    scores = _scores(report, frozenset(places))
    side_px = FEW_PX if len(places) <= FEW else THUMB_PX
    cards: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for sample in benchmark:
        if sample.id not in wanted:
            continue
        own = {name: held.get(sample.id) for name, held in found.items()}
        for card, shown in _cards(sample, wanted[sample.id], report, own, dict(truths or {}), scores, side_px):
            cards.append({**card, "chunk": len(pictures) // CHUNK, "at": len(pictures) % CHUNK})
            pictures.append(shown)
    chunks = [pictures[start : start + CHUNK] for start in range(0, len(pictures), CHUNK)]
    return Gallery(cards, chunks, len(report.samples) - len(places))


def runs(mask: Mask) -> str:
    """Run lengths of a mask, row by row, background first, in base 36."""
    flat = np.concatenate([[False], mask.ravel(), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    lengths = np.diff(np.concatenate([[0], edges, [mask.size]]))
    if len(edges) and lengths[-1] == 0:
        lengths = lengths[:-1]
    return " ".join(_base36(int(length)) for length in lengths)


def thumbnail(image: Image, side_px: int = THUMB_PX) -> Image:
    """The image with its longer side at most `side_px`."""
    height, width = image.shape[:2]
    factor = min(1.0, side_px / max(height, width))
    if factor == 1.0:
        return image
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    small: Image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return small


def _cards(
    sample: BenchmarkSample,
    place: int,
    report: ScoreReport,
    predictions: Mapping[str, Prediction | None],
    truths: Mapping[str, Truth],
    scores: Mapping[tuple[str, str, int, int], tuple[float | None, str]],
    side_px: int,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    text = report.samples[place]
    own = sample.masks()
    names = [info.name for info in report.truths]
    for index, image in enumerate(sample.images()):
        small = thumbnail(image, side_px)
        size = small.shape[:2]
        masks = {names[0]: _small(own[index].mask, size)}
        for name, truth in truths.items():
            found = truth(sample.id) if callable(truth) else truth.get(sample.id)
            if found is not None and (other := found[index]) is not None:
                masks[name] = _small(other, size)
        shown: dict[str, Any] = {
            "src": "data:image/jpeg;base64," + base64.b64encode(encode_jpeg(small, quality=QUALITY)).decode(),
            "truth": masks,
            "pred": {},
            "trace": {},
        }
        ious: dict[str, dict[str, float | None]] = {name: {} for name in names}
        status, answers = {}, {}
        for name, prediction in predictions.items():
            for truth_name in names:
                iou, said = scores.get((name, truth_name, place, index), (None, "missing"))
                ious[truth_name][name] = None if iou is None else round(iou, 4)
                if truth_name == names[0]:
                    status[name] = said
            if prediction is None:
                continue
            answers[name] = prediction.answer
            rle = prediction.masks[index]
            if rle is not None:
                shown["pred"][name] = _small(decode_rle(rle), size)
            if prediction.trace:
                shown["trace"][name] = [_step(step.model_dump()) for step in prediction.trace]
        card = {
            "id": sample.id,
            "image": index,
            "q": text.question,
            "a": text.answer,
            "tags": text.tags,
            "w": int(size[1]),
            "h": int(size[0]),
            "iou": ious,
            "status": status,
            "answers": answers,
        }
        yield card, shown


def _small(mask: Mask, size: tuple[int, ...]) -> str:
    grey = mask.astype(np.uint8) * np.uint8(255)
    if mask.shape != size:
        grey = cv2.resize(grey, (size[1], size[0]), interpolation=cv2.INTER_AREA)
    return runs(grey >= 128)


def _step(step: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {name: _cut(text) for name, text in value.items()} if isinstance(value, dict) else _cut(str(value))
        for key, value in step.items()
    }


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"


def _base36(number: int) -> str:
    text = ""
    while True:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
        if not number:
            return text


def _first_truth(report: ScoreReport) -> Iterator[tuple[Ints, Reals]]:
    """Per segmenter the samples' places and IoU (NaN for none) against the first truth."""
    for units in report.units:
        if units.truth == report.truths[0].name:
            yield np.array(units.sample, dtype=np.int64), np.array(units.iou, dtype=np.float64)


def _mean_iou(report: ScoreReport) -> Reals:
    """Per sample the mean over its pairs, those without a score as 0; NaN for a sample without pairs."""
    total, pairs = np.zeros(len(report.samples)), np.zeros(len(report.samples))
    for sample, iou in _first_truth(report):
        np.add.at(total, sample, np.nan_to_num(iou, nan=0.0))
        np.add.at(pairs, sample, 1)
    found: Reals = np.full(len(total), np.nan)
    np.divide(total, pairs, out=found, where=pairs > 0)
    return found


def _disagreement(report: ScoreReport) -> Reals:
    """Per sample the gap between the best and the worst segmenter's IoU; NaN where nobody has a score."""
    low, high = np.ones(len(report.samples)), np.zeros(len(report.samples))
    seen = np.zeros(len(report.samples), dtype=np.bool_)
    for sample, iou in _first_truth(report):
        there = np.isfinite(iou)
        np.minimum.at(low, sample[there], iou[there])
        np.maximum.at(high, sample[there], iou[there])
        seen[sample[there]] = True
    return np.where(seen, high - low, np.nan)


def _ranked(values: Reals) -> list[int]:
    """Places of the values that are none of NaN, ascending; equal ones in their order."""
    order = np.argsort(values, kind="stable")
    found: list[int] = order[np.isfinite(values[order])].tolist()
    return found


def _scores(report: ScoreReport, places: frozenset[int]) -> dict[tuple[str, str, int, int], tuple[float | None, str]]:
    found = {}
    for units in report.units:
        for place, sample in enumerate(units.sample):
            if sample in places:
                said = units.failure[place] or units.status[place]
                found[units.segmenter, units.truth, sample, units.image[place]] = (units.iou[place], said)
    return found
