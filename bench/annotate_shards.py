"""Masks of many images by two workers, one of them killed at random: is anything lost, done twice, changed?

    python -m bench.annotate_shards [--images 2000] [--shard-images 64] [--kills 1] [--seed 0] [--folder DIR]

Small pictures of our own making go through the same shards, locks and commits as a real week's, with the portable
annotator. Then one process does the same week undisturbed, and the two results are compared byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from engine.core.config import Config
from engine.core.config.sections import AnnotateSection, AskSection
from engine.core.images import encode_png
from engine.core.schema import Annotation, Entity, Question, Writer
from engine.core.store import Home, sha256_file
from flows.run import Run, run_for
from flows.stages import annotate, ask, collect

WINDOW = "251103_251109"
NOW = datetime(2025, 12, 1, tzinfo=UTC)


def open_home(home: Path, *, shard_images: int) -> Run:
    """A run over a home, with the template writer and the portable annotator."""
    config = Config(
        home=home,
        ask=AskSection(writer="template"),
        annotate=AnnotateSection(detector="portable", mask_model="portable", shard_images=shard_images),
    )
    return run_for(config, WINDOW, now=NOW)


def prepare(home: Path, *, images: int, shard_images: int, seed: int = 0, scale: int = 1) -> Run:
    """A home whose collect and ask stages are done: so many pictures, a question each; their sides are 64 to 130
    pixels times `scale`."""
    run = open_home(home, shard_images=shard_images)
    collect.place(run).commit([], [], stage="collect", found=0)
    place = ask.place(run)
    assert place is not None
    questions = [_question(run.home, index, seed, scale) for index in range(images)]
    place.commit(questions, [], stage="ask", found=images)
    return run


def work(home: Path, *, shard_images: int, log: Path) -> None:
    """What a worker does: every shard that is missing and that nobody holds, noting each that it finished."""
    run = open_home(home, shard_images=shard_images)
    while left := annotate.missing(run):
        before = len(left)
        for index in left:
            if annotate.do_shards(run, [index]):
                with log.open("a", encoding="utf-8") as handle:
                    handle.write(f"{index}\n")
        if len(annotate.missing(run)) == before:
            time.sleep(0.05)  # the rest is held by others


def disturbed(home: Path, *, shard_images: int, kills: int, seed: int, within_s: float) -> list[int]:
    """Two workers, `kills` of them killed at random moments and replaced; returns the shards they finished."""
    luck = random.Random(seed)
    log = home / "work.log"
    command = [sys.executable, "-m", "bench.annotate_shards", "--worker", str(home), "--log", str(log)]
    command += ["--shard-images", str(shard_images)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, cwd=Path(__file__).parents[1], stderr=subprocess.DEVNULL)

    workers = [start(), start()]
    run = open_home(home, shard_images=shard_images)
    try:
        for _ in range(kills):
            total = len(annotate.shards(run))
            goal = luck.randrange(1, max(2, total - 2))  # not before anything is done, not when all is
            while len(annotate.missing(run)) > total - goal and any(worker.poll() is None for worker in workers):
                time.sleep(0.02)
            time.sleep(luck.uniform(0, within_s))
            victim = luck.randrange(2)
            workers[victim].send_signal(signal.SIGKILL)
            workers[victim].wait()
            workers[victim] = start()
        for worker in workers:
            if worker.wait():
                raise SystemExit(f"a worker ended with {worker.returncode}")
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
    annotate.finish(run)
    return [int(line) for line in log.read_text(encoding="utf-8").split()]


def digests(run: Run) -> dict[str, str]:
    """sha256 of the finished stage's files and of each shard's."""
    place = annotate.place(run)
    assert place is not None
    names = ("part-00000.jsonl", "rejected.jsonl", "manifest.json")
    files = [path for path in sorted(place.path.rglob("*")) if path.name in names]
    return {str(path.relative_to(place.path)): sha256_file(path) for path in files}


def _question(home: Home, index: int, seed: int, scale: int) -> Question:
    luck = np.random.default_rng((seed, index))
    height, width = scale * int(luck.integers(64, 100)), scale * int(luck.integers(80, 130))
    ramp = np.linspace(0.8, 1.1, width)[None, :, None] * luck.integers(60, 130, 3)
    pixels = np.broadcast_to(ramp, (height, width, 3)) + luck.normal(0, 3, (height, width, 3))
    ys, xs = np.mgrid[0:height, 0:width]
    x, y, r = luck.uniform(0.35, 0.65) * width, luck.uniform(0.35, 0.65) * height, luck.uniform(0.16, 0.3) * height
    pixels[(xs - x) ** 2 + (ys - y) ** 2 < r**2] = luck.choice([(220, 60, 40), (40, 200, 90), (240, 220, 60)])
    image = home.blobs.put(encode_png(pixels.clip(0, 255).astype(np.uint8)), "png")
    name = f"Ball {index}"
    return Question(
        id=f"q{index:06d}",
        article_id=f"a{index}",
        article_url=f"http://news.example/{index}",
        images=(image,),
        question="Which toy is shown?",
        answer=name,
        entity_type="product",
        kind="novel",
        phrase="ball",
        entities=(Entity(name=name, type="product", phrase="ball"),),
        writer=Writer(name="template", version="1"),
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--shard-images", type=int, default=64)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    told = parser.parse_args(argv)
    if told.worker:
        work(told.worker, shard_images=told.shard_images, log=told.log)
        return
    with tempfile.TemporaryDirectory(dir=told.folder) as folder:
        sizes = {"images": told.images, "shard_images": told.shard_images, "seed": told.seed}
        first = prepare(Path(folder) / "disturbed", **sizes)
        began = time.monotonic()
        finished = disturbed(
            first.home.root, shard_images=told.shard_images, kills=told.kills, seed=told.seed, within_s=2.0
        )
        seconds = time.monotonic() - began
        second = prepare(Path(folder) / "quiet", **sizes)
        annotate.do(second)
        kept = annotate.place(first)
        assert kept is not None
        report = {
            "images": told.images,
            "shards": len(annotate.shards(first)),
            "kills": told.kills,
            "rows": len(kept.read(Annotation)) + len(kept.rejected()),
            "annotations": len(kept.read(Annotation)),
            "shards finished twice": len(finished) - len(set(finished)),
            "same bytes as undisturbed": digests(first) == digests(second),
            "seconds with two workers": round(seconds, 1),
            "images per second": round(told.images / seconds, 1),
        }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
