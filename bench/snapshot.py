"""Speed and memory of writing and checking a snapshot of 2,000 rows of about 585 KB, the published set's figure.

    python -m bench.snapshot [--rows 2000] [--work DIR] [--only write|memory|build|verify]

Each figure stands beside a peer measured in the same run: pyarrow writing the same table at once, and a plain loop
that reads the pictures' files and decodes them with Pillow. The pictures are synthetic photos (smooth shapes with
noise), a few distinct ones whose bytes are made different for every row, so that no encoder can profit.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.config import SnapshotSection
from engine.core.masks import encode_png, encode_rle
from engine.core.schema import (
    Annotation,
    Article,
    Binding,
    BoxRecord,
    DateWitness,
    Entity,
    ImageAnnotation,
    ImageRef,
    ModelRef,
    Question,
    Sample,
    Writer,
)
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.snapshot.build import build
from engine.snapshot.features import default_features
from engine.snapshot.parquet import ShardWriter
from engine.snapshot.samples import sample_id
from engine.snapshot.verify import verify

WIDTH, HEIGHT = 1600, 1067
PHOTOS = 8
WINDOW = parse_window("2026-W48")


def photo(seed: int) -> bytes:
    """A JPEG of about 580 KB: smooth shapes and sensor-like noise."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, size=(9, 13, 3), dtype=np.uint8)
    base = np.asarray(PilImage.fromarray(small).resize((WIDTH, HEIGHT), PilImage.Resampling.BICUBIC), dtype=np.int16)
    noisy = (base + rng.normal(0, 10.2, size=base.shape)).clip(0, 255).astype(np.uint8)
    out = io.BytesIO()
    PilImage.fromarray(noisy).save(out, "JPEG", quality=90)
    return out.getvalue()


def numbered(data: bytes, number: int) -> bytes:
    """The same picture as other bytes: a quantisation table that no component uses holds the number."""
    table = bytes(number // 200**digit % 200 + 1 for digit in range(64))
    return data[:2] + b"\xff\xdb\x00\x43\x03" + table + data[2:]


def mask_of(number: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """An ellipse somewhere in the picture."""
    ys, xs = np.mgrid[0:HEIGHT, 0:WIDTH]
    cx, cy = 300 + number * 37 % 1000, 250 + number * 53 % 560
    return ((xs - cx) / 180) ** 2 + ((ys - cy) / 240) ** 2 < 1


def rows(count: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Rows of the default config, and their size in bytes."""
    photos = [photo(n) for n in range(PHOTOS)]
    masks = [encode_png(mask_of(n)) for n in range(PHOTOS)]
    for n in range(count):
        data, mask = numbered(photos[n % PHOTOS], n), masks[n % PHOTOS]
        row = {
            "id": f"{n:016x}",
            "question": f"Who stands at the lectern in picture {n}?",
            "answer": f"Person {n}",
            "images": [{"bytes": data, "path": f"{n}.jpg"}],
            "annotations": [{"bytes": mask, "path": f"{n}.png"}],
        }
        yield row, len(data) + len(mask)


def write_ours(folder: Path, count: int) -> dict[str, float]:
    spent = 0.0
    total = 0
    with ShardWriter(folder / "data", default_features()) as writer:
        for row, size in rows(count):
            begin = time.perf_counter()
            writer.write(row, size)
            spent += time.perf_counter() - begin
            total += size
        begin = time.perf_counter()
    spent += time.perf_counter() - begin
    return {"seconds": spent, "bytes": total, "peak": peak_bytes()}


def write_pyarrow(folder: Path, count: int) -> dict[str, float]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = default_features().arrow_schema
    parts = [row for row, _ in rows(count)]
    total = sum(len(row["images"][0]["bytes"]) + len(row["annotations"][0]["bytes"]) for row in parts)
    table = pa.Table.from_pylist(parts, schema=schema)
    del parts
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    pq.write_table(table, folder / "table.parquet")
    return {"seconds": time.perf_counter() - begin, "bytes": total, "peak": peak_bytes()}


def samples(count: int, blobs: BlobStore) -> list[Sample]:
    """Samples whose pictures lie in a blob store, as the annotate stage leaves them."""
    photos = [photo(n) for n in range(PHOTOS)]
    rles = [encode_rle(mask_of(n)) for n in range(PHOTOS)]
    out = []
    published = WINDOW.start
    for n in range(count):
        sha256 = blobs.put(numbered(photos[n % PHOTOS], n), "jpg")
        image = ImageRef(
            sha256=sha256,
            ext="jpg",
            url=f"https://x.example/{n}.jpg",
            width=WIDTH,
            height=HEIGHT,
            caption=f"Person {n}",
        )
        article = Article(
            id=f"a{n}",
            url=f"https://x.example/{n}",
            canonical_url=f"https://x.example/{n}",
            title=f"Title {n}",
            text="text",
            domain="Society",
            published_at=published,
            date_witnesses=(DateWitness(kind="jsonld", value=published),),
            images=(image,),
        )
        question = Question(
            id=f"q{n}",
            article_id=article.id,
            article_url=article.url,
            images=(sha256,),
            question=f"Who stands at the lectern in picture {n}?",
            answer=f"Person {n}",
            entity_type="person",
            kind="emerging",
            phrase="person",
            entities=(Entity(name=f"Person {n}", type="person", phrase="person"),),
            evidence="text",
            writer=Writer(name="llm", version="1", model="m"),
        )
        found = ImageAnnotation(
            image=sha256,
            width=WIDTH,
            height=HEIGHT,
            rle=rles[n % PHOTOS],
            candidates=(BoxRecord(x1=1, y1=1, x2=9, y2=9, score=0.5, phrase="person"),),
            binding=Binding(candidate=0, rule="single", margin=1.0),
        )
        annotation = Annotation(
            id=f"m{n}", question_id=question.id, images=(found,), models=(ModelRef(role="detector", name="d"),)
        )
        name = sample_id(article, question)
        out.append(Sample(id=name, article=article, images=(image,), question=question, annotation=annotation))
    return out


def build_ours(folder: Path, count: int) -> dict[str, float]:
    blobs = BlobStore(folder / "blobs")
    found = samples(count, blobs)
    target = folder / WINDOW.name
    target.mkdir()
    begin = time.perf_counter()
    build(
        target,
        found,
        window=WINDOW,
        config=SnapshotSection(contact="x@y.example"),
        hub_repo="",
        blobs=blobs,
        key="k",
    )
    seconds = time.perf_counter() - begin
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return {"seconds": seconds, "bytes": size, "peak": peak_bytes()}


def verify_ours(folder: Path, count: int, workers: int = 2) -> dict[str, float]:
    begin = time.perf_counter()
    wrong = verify(folder / WINDOW.name, workers=workers)
    seconds = time.perf_counter() - begin
    assert not wrong, wrong[:3]
    return {"seconds": seconds, "bytes": 0, "peak": peak_bytes()}


def decode_plain(folder: Path, count: int) -> dict[str, float]:
    """Read each picture's own file and decode it, then the masks: the least a reader must do."""
    masks = [encode_png(mask_of(n)) for n in range(PHOTOS)]
    paths = sorted((folder / "blobs").rglob("*.jpg"))
    assert len(paths) == count
    begin = time.perf_counter()
    for n, path in enumerate(paths):
        PilImage.open(io.BytesIO(path.read_bytes())).load()
        np.asarray(PilImage.open(io.BytesIO(masks[n % PHOTOS])))
    return {"seconds": time.perf_counter() - begin, "bytes": 0, "peak": peak_bytes()}


def peak_bytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


JOBS = {
    "write_ours": write_ours,
    "write_pyarrow": write_pyarrow,
    "build_ours": build_ours,
    "verify_ours": verify_ours,
    "decode_plain": decode_plain,
}


def run(job: str, folder: Path, count: int) -> dict[str, float]:
    """One job in a process of its own, so that its peak memory is its own."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "bench.snapshot", "--job", job, "--work", str(folder), "--rows", str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--job", choices=sorted(JOBS))
    parser.add_argument("--only", choices=("write", "memory", "build", "verify"))
    args = parser.parse_args(argv)
    if args.job:
        sys.stdout.write(json.dumps(JOBS[args.job](args.work, args.rows)) + "\n")
        return
    with tempfile.TemporaryDirectory(prefix="nest-bench-", dir=args.work) as name:
        _report(Path(name), args.rows, args.only)


def _report(work: Path, count: int, only: str | None) -> None:
    def say(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    if only in (None, "write", "memory"):
        ours, peer = run("write_ours", work / "a", count), run("write_pyarrow", work / "b", count)
        speed, peer_speed = (found["bytes"] / found["seconds"] / 1e6 for found in (ours, peer))
        say(f"rows {count}, {ours['bytes'] / count / 1e3:.0f} KB each")
        say(f"write: {speed:.0f} MB/s; pyarrow at once {peer_speed:.0f} MB/s; ratio {speed / peer_speed:.2f}")
        shutil.rmtree(work / "a")
        shutil.rmtree(work / "b")
        twice = run("write_ours", work / "a", 2 * count)
        shutil.rmtree(work / "a")
        say(f"write, peak memory: {ours['peak'] / 2**20:.0f} MiB; twice the rows {twice['peak'] / 2**20:.0f} MiB")
    if only in (None, "build", "verify", "memory"):
        built = run("build_ours", work / "c", count)
        say(f"build with loading back: {built['seconds']:.1f} s, peak {built['peak'] / 2**20:.0f} MiB")
        plain = run("decode_plain", work / "c", count)
        checked = run("verify_ours", work / "c", count)
        say(
            f"verify: {checked['seconds']:.1f} s; read and decode alone {plain['seconds']:.1f} s; ratio of speeds "
            f"{plain['seconds'] / checked['seconds']:.2f}; peak {checked['peak'] / 2**20:.0f} MiB"
        )
        shutil.rmtree(work / "c")


if __name__ == "__main__":
    main()
