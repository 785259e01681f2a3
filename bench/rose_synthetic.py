"""The harder synthetic set as a benchmark with news around it, for the ablation of ROSE.

Every named entity of a scene has a fact that two made-up articles report: the scene's own, which retrieval may not use,
and a later look back that also reports on somebody else. References are the set's own pictures. The portable parts did
not make these masks, and neither names nor captions reach a segmenter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from support.synthetic import Scene, TrueEntity, scenes

from engine.core.images import encode_jpeg, encode_png
from engine.core.schema import Article
from engine.core.store import sha256_bytes
from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask

DAY = datetime(2026, 3, 4, 9, tzinfo=UTC)
_FACTS = (
    "received the {n} medal of Stoneport",
    "opened the {n} tidal gate at Lowmoor",
    "won the {n} harbour prize",
    "drew the longest queue at stand {n}",
    "took part in the {n} trial of the coast road",
    "was named in the {n} report of the council",
)
_ORDER = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh")


def build(count: int, folder: Path, *, seed: int = 0) -> tuple[Benchmark, list[Article]]:
    """A benchmark of all named entities of `count` scenes, its articles, and the references written to `folder`."""
    samples: list[BenchmarkSample] = []
    articles: list[Article] = []
    facts: list[tuple[str, str]] = []
    for number, scene in enumerate(scenes(count, seed)):
        picture = encode_png(scene.image)
        own = f"https://own.example/{number}"
        told = []
        for entity in scene.entities:
            fact = _fact(len(facts))
            facts.append((entity.name, fact))
            told.append(f"{entity.name} {fact}.")
            samples.append(_sample(f"s{number:03d}-{len(told)}", entity, fact, picture, own))
            _write_references(folder, scene, entity)
        articles.append(_article(f"own{number}", own, f"Scene {number}", " ".join(told), DAY))
    for number in range(0, len(facts), 3):
        lines = [
            f"As was told this week, {name} {fact}, and many came to see it."
            for name, fact in facts[number : number + 3]
        ]
        place = f"https://week.example/{number}"
        articles.append(_article(f"week{number}", place, "A look back", " ".join(lines), DAY + timedelta(days=2)))

    def read(_: bool) -> Iterator[BenchmarkSample]:
        return iter(samples)

    digest = sha256_bytes("".join(f"{s.id} {s.answer} {s.question}\n" for s in samples).encode())
    name = f"synthetic-{count}-{seed}"
    return Benchmark(name=name, revision="", digest=digest, count=len(samples), read=read), articles


def _fact(number: int) -> str:
    order = _ORDER[(number // len(_FACTS)) % len(_ORDER)]
    again = number // (len(_FACTS) * len(_ORDER))
    # the year always: "the first medal" alone would be true of several
    return f"{_FACTS[number % len(_FACTS)].format(n=order)} in year {again + 1}"


def _sample(name: str, entity: TrueEntity, fact: str, picture: bytes, own: str) -> BenchmarkSample:
    noun = "person" if entity.type == "person" else entity.phrase
    return BenchmarkSample(
        id=name,
        question=f"Which {noun} in the image {fact}?",
        answer=entity.name,
        encoded=partial(tuple, (picture,)),
        decode_masks=partial(tuple, (TruthMask(entity.mask),)),
        tags={"type": entity.type},
        image_keys=(sha256_bytes(picture),),
        cutoff=DAY + timedelta(days=5),
        blocked=(own,),
    )


def _write_references(folder: Path, scene: Scene, entity: TrueEntity) -> None:
    place = folder / entity.name.lower().replace(" ", "-")
    if place.is_dir():
        return
    place.mkdir(parents=True)
    told = {"name": entity.name, "aliases": [], "type": entity.type, "published": "2025-01-01"}
    (place / "names.json").write_text(json.dumps(told), encoding="utf-8")
    for number, picture in enumerate(scene.references[entity.name]):
        (place / f"{number}.jpg").write_bytes(encode_jpeg(picture))


def _article(name: str, url: str, title: str, text: str, published: datetime) -> Article:
    return Article(id=name, url=url, canonical_url=url, title=title, text=text, published_at=published)
