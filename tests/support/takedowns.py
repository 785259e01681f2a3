"""A home that holds a person's picture and name in every way a run leaves them, and looking for their traces."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from engine.core.schema import Article, ImageRef, Prediction, Rejected, Sample
from engine.core.store import Home
from engine.core.windows import parse_window
from engine.snapshot.amend import Change, amend
from engine.snapshot.build import build
from engine.snapshot.hub import push
from engine.snapshot.revise import put_in_place, read_rows
from engine.snapshot.samples import join
from support import snapshots
from support.hub import LoopbackHub

EARLIER = parse_window("2026-W47")
NAME = "Tomás Okafor"


@dataclass
class Place:
    """A home with two windows, of which one picture is in both, and everything that a run leaves behind."""

    home: Path
    image: ImageRef
    article: Article
    jpeg: bytes

    @property
    def later(self) -> Path:
        return self.home / "snapshots" / snapshots.WINDOW.name

    @property
    def earlier(self) -> Path:
        return self.home / "snapshots" / EARLIER.name


def furnish(folder: Path) -> Place:
    """Make the home in this folder."""
    home = Home(folder)
    blobs = home.blobs
    articles, questions, annotations = snapshots.records(6, blobs)
    target = next(n for n, question in enumerate(questions) if question.answer == NAME)
    image = articles[target].images[0]
    # the same photo once more, a week earlier, from another address and as other bytes
    other_articles, other_questions, other_annotations = snapshots.records(3, blobs, seed=100)
    again = blobs.put(blobs.get(image.sha256) + b"\0", "jpg")
    twin = image.model_copy(update={"sha256": again, "url": "https://elsewhere.example/copy.jpg"})
    other_articles[0] = other_articles[0].model_copy(update={"images": (twin,)})
    other_questions[0] = other_questions[0].model_copy(update={"images": (again,), "answer": "Nobody Known"})
    masks = other_annotations[0].images[0].model_copy(update={"image": again})
    other_annotations[0] = other_annotations[0].model_copy(update={"images": (masks,)})
    weeks = (
        (snapshots.WINDOW, articles, questions, annotations),
        (EARLIER, other_articles, other_questions, other_annotations),
    )
    for window, found, asked, drawn in weeks:
        stages = (("collect", found), ("ask", asked), ("annotate", drawn))
        for stage, items in stages:
            lost = [Rejected(item=image.url, stage="collect", code="image_too_small", detail=f"of {NAME}")]
            home.stage(window, stage, "k1").commit(items, lost, stage=stage, found=9)
        home.stage(window, "collect", "k1").commit_shard(0, found, [])
        folder = home.snapshot(window.name)
        folder.mkdir(parents=True)
        build(
            folder,
            [item for item in join(found, asked, drawn) if isinstance(item, Sample)],
            window=window,
            config=snapshots.CONFIG,
            hub_repo="news/{name}",
            blobs=blobs,
            key="k",
        )
    _leave_traces(home, image, articles[target])
    return Place(home.root, image, articles[target], blobs.get(image.sha256))


def _leave_traces(home: Home, image: ImageRef, article: Article) -> None:
    jpeg = home.blobs.get(image.sha256)
    head = json.dumps({"url": image.url, "kind": "image"})
    files = {
        "cache/http/aa/1.http": head.encode() + b"\n" + jpeg,
        "cache/http/aa/2.http": b'{"url":"https://x.example"}\n<p>Tom&aacute;s  Okafor spoke</p>',
        "cache/http/aa/3.http": b'{"url":"https://x.example"}\n' + "<p>Tomás Okafor</p>".encode("cp1252"),
        "cache/http/aa/keep.http": b'{"url":"https://y.example"}\n<p>Tomas Okaforov and others</p>',
        "cache/llm/aa/1.json": json.dumps({"reply": {"text": f"the answer is {NAME.upper()}"}}).encode("ascii"),
        "cache/llm/aa/keep.json": b'{"reply": {"text": "somebody"}}',
        "harvest/herald/2026-48.jsonl": f'{{"url":"{article.url}","title":"{NAME}"}}\n{{"url":"https://z"}}\n'.encode(),
        "predictions/x/run.json": json.dumps({"note": NAME}).encode(),
        "reports/NEST_261123_261129/k/report.html": b"<img src='data:image/jpeg;base64,"
        + base64.b64encode(jpeg)
        + b"'>",
        "windows/261123_261129/ask/k1/run.json": json.dumps({"last": image.url.replace("/", "\\/")}).encode(),
    }
    for name, data in files.items():
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    rows = [row.id for row in read_rows(home.snapshot(snapshots.WINDOW.name))]
    items = [Prediction(sample_id=name, segmenter="s", masks=(None,)) for name in rows]
    home.predictions(snapshots.WINDOW.name, "s", "k").commit(items, [], stage="predict", found=len(items))


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All bytes under a folder; the columns of Parquet files are unpacked, since they are compressed."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path), path.read_bytes()
        if path.suffix == ".parquet":
            yield from unpacked(str(path), path.read_bytes())


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    for row in pq.read_table(io.BytesIO(data)).to_pylist():
        yield name, json.dumps(row, ensure_ascii=False, default=lambda value: "").encode()
        for item in [*(row.get("images") or ()), *(row.get("annotations") or ())]:
            yield name, item["bytes"]


def served(hub: LoopbackHub) -> Iterator[tuple[str, bytes]]:
    for repo in hub.repos.values():
        for name, data in repo.served().items():
            yield name, data
            if data[:4] == b"PAR1":
                yield from unpacked(name, data)


def grep(found: Iterator[tuple[str, bytes]], *needles: bytes) -> list[str]:
    return [name for name, data in found if any(needle.lower() in data.lower() for needle in needles)]


def traces(place: Place) -> list[bytes]:
    """The picture's bytes (also in base64), its addresses, and the name as files write it."""
    return [
        # from the pixels: the tables at the beginning are the same in all pictures
        place.jpeg[-220:-20],
        base64.b64encode(place.jpeg)[-240:-40],
        place.image.url.removeprefix("https://").encode(),
        b"elsewhere.example/copy.jpg",
    ]


def names() -> list[bytes]:
    return [NAME.encode(), NAME.encode("cp1252"), b"Tom\\u00e1s Okafor", b"Tom&aacute;s  Okafor", b"TOM\\u00c1S OKAFOR"]


def publish(hub: LoopbackHub, place: Place) -> dict[str, object]:
    """Both snapshots on the Hub, the later one in two revisions."""
    to = {"repo": "news/{name}", "token": hub.token, "endpoint": hub.endpoint}
    push(place.earlier, **to)
    push(place.later, **to)
    other = next(row.id for row in read_rows(place.later) if row.default["answer"] != NAME)
    new = place.home / "snapshots" / "new"
    amend(place.later, new, changes=[Change(other, "a better name", answer="Ada Byron")])
    put_in_place(new, place.later)
    push(place.later, **to)
    return {"token": hub.token, "endpoint": hub.endpoint}
