"""Small benchmarks and predictions for the tests of scores and reports: made of numbers, no files of others."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image as PilImage

from engine.core.geometry import Image, Mask
from engine.core.images import encode_jpeg
from engine.core.masks import encode_png, encode_rle
from engine.core.schema import Failure, Prediction
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask

WINDOW = "NEST_261109_261115"


def box_mask(height: int, width: int, box: tuple[int, int, int, int]) -> Mask:
    """A filled rectangle x1, y1, x2, y2 (half-open)."""
    mask = np.zeros((height, width), dtype=np.bool_)
    x1, y1, x2, y2 = box
    mask[y1:y2, x1:x2] = True
    return mask


def picture(height: int, width: int, seed: int) -> Image:
    """A smooth coloured picture, the same for the same seed."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    colours = rng.integers(40, 216, size=(3, 2))
    bands = [low + (high - low) * (x / width + y / height) / 2 for low, high in colours]
    return np.stack(bands, axis=-1).astype(np.uint8)


def benchmark_of(
    truths: Mapping[str, Sequence[TruthMask]],
    *,
    tags: Mapping[str, Mapping[str, str]] | None = None,
    keys: Mapping[str, tuple[str, ...]] | None = None,
    answers: Mapping[str, tuple[str, ...]] | None = None,
    name: str = WINDOW,
) -> Benchmark:
    """A benchmark in memory: masks by sample id; pictures are made when asked for."""

    def sample(identity: str) -> BenchmarkSample:
        found = tuple(truths[identity])
        names = (answers or {}).get(identity, (f"Answer {identity}",))

        def encoded() -> tuple[bytes, ...]:
            return tuple(encode_jpeg(picture(*mask.mask.shape, seed=len(identity))) for mask in found)

        return BenchmarkSample(
            id=identity,
            question=f"Which one is {identity}?",
            answer=names[0],
            aliases=names[1:],
            encoded=encoded,
            decode_masks=lambda: found,
            tags=(tags or {}).get(identity, {}),
            image_keys=(keys or {}).get(identity, (identity,)),
        )

    def read(images: bool) -> Iterator[BenchmarkSample]:
        return (sample(identity) for identity in truths)

    return Benchmark(name=name, revision="r1", digest="ab" * 32, count=len(truths), read=read)


def predict(
    sample_id: str,
    masks: Sequence[Mask | None],
    *,
    segmenter: str = "model",
    answer: str | None = None,
    kind: str = "no_box",
    no_target: tuple[bool | None, ...] = (),
) -> Prediction:
    """A prediction; None is a failure of the given kind."""
    return Prediction(
        sample_id=sample_id,
        segmenter=segmenter,
        masks=tuple(None if mask is None else encode_rle(mask) for mask in masks),
        failures=tuple(Failure.model_validate({"kind": kind}) if mask is None else None for mask in masks),
        no_target=no_target,
        answer=answer,
    )


def png(pixels: np.ndarray[Any, Any], mode: str | None = None) -> bytes:
    """PNG bytes of an array."""
    out = io.BytesIO()
    PilImage.fromarray(pixels).convert(mode).save(out, "PNG") if mode else PilImage.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def write_snapshot(
    folder: Path,
    rows: int = 6,
    *,
    provenance: bool = True,
    mask_bytes: Callable[[Mask], bytes] = encode_png,
    size: tuple[int, int] = (48, 64),
) -> dict[str, Mask]:
    """A snapshot folder as published: two Parquet shards, optionally a provenance file; returns the masks by id."""
    masks: dict[str, Mask] = {}
    table: list[dict[str, Any]] = []
    origins: list[dict[str, Any]] = []
    height, width = size
    for index in range(rows):
        identity = f"s{index:03d}"
        masks[identity] = box_mask(height, width, (4 + index % 5, 5, 30 + index % 5, 40))
        image = encode_jpeg(picture(height, width, seed=index // 2))
        table.append(
            {
                "id": identity,
                "question": f"Which person in the image won prize {index}?",
                "answer": f"Name {index}",
                "images": [{"bytes": image, "path": f"{identity}_0.jpg"}],
                "annotations": [{"bytes": mask_bytes(masks[identity]), "path": f"{identity}_0.png"}],
            }
        )
        origins.append(
            {
                "id": identity,
                "article_url": f"https://news.example/{index}",
                "domain": "Sports" if index % 2 else "Politics",
                "entity_type": "person",
                "aliases": [f"N. {index}"],
                "question_kind": "novel" if index % 3 else "emerging",
                "image_phashes": [f"{index // 2:016x}"],
                "novelty": [
                    {"model": "tiny-1", "label": "novel"},
                    {"model": "tiny-1", "label": "emerging" if index % 2 else "novel"},
                ],
                "writer": {"name": "template"},
            }
        )
    (folder / "data").mkdir(parents=True)
    half = (rows + 1) // 2
    for number, part in enumerate((table[:half], table[half:])):
        pq.write_table(pa.Table.from_pylist(part), folder / "data" / f"train-{number:05d}-of-00002.parquet")
    if provenance:
        (folder / "provenance").mkdir()
        pq.write_table(pa.Table.from_pylist(origins), folder / "provenance" / "train-00000-of-00001.parquet")
    return masks
