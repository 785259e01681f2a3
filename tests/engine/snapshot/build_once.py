"""Run as a program: build one snapshot of shuffled samples and print the sha256 of its files as JSON."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pyarrow.parquet as pq
from support import snapshots

from engine.core.store import BlobStore, sha256_file
from engine.snapshot.build import build

if __name__ == "__main__":
    out, seed = Path(sys.argv[1]), int(sys.argv[2])
    out.mkdir(parents=True)
    blobs = BlobStore(out.parent / "blobs")
    found = snapshots.samples(6, blobs, images_per_article=2)
    random.Random(seed).shuffle(found)
    build(out, found, window=snapshots.WINDOW, config=snapshots.CONFIG, hub_repo="news/{name}", blobs=blobs, key="k")
    files = {path.relative_to(out).as_posix(): sha256_file(path) for path in sorted(out.rglob("*")) if path.is_file()}
    order = pq.read_table(out / "data", columns=["id"])["id"].to_pylist()
    json.dump({"files": files, "order": order}, sys.stdout)
