"""The figures of a snapshot's card, counted from its provenance rows and from nothing else.

The same counting serves the builder (row by row) and the check of a finished folder, so that a card can be held
against its data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import numpy as np

from engine.core.masks import decode_rle
from engine.core.schema import Rle


@dataclass(slots=True)
class Statistics:
    """Running counts; `add` takes one provenance row and its answer.

    `images` maps a picture's sha256 to the number of entities named for it, `area_shares` holds the share of its
    picture that each mask covers.
    """

    rows: int = 0
    pictures: int = 0
    images: dict[str, int] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    domains: Counter[str] = field(default_factory=Counter)
    entity_types: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    novelty: dict[str, Counter[str]] = field(default_factory=dict)
    publishers: Counter[str] = field(default_factory=Counter)
    source_types: Counter[str] = field(default_factory=Counter)
    writers: Counter[str] = field(default_factory=Counter)
    articles: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)
    gates: dict[str, list[float]] = field(default_factory=dict)
    area_shares: list[float] = field(default_factory=list)
    shrunk: int = 0
    portable: int = 0
    first: date | None = None
    last: date | None = None

    def add(self, row: Mapping[str, Any], *, answer: str) -> None:
        self.rows += 1
        named = len(row["entities"])
        for digest in row["image_sha256"]:
            self.pictures += 1
            self.images[digest] = max(named, self.images.get(digest, 0))
            self.asked[digest] += 1
        self.domains[row["domain"]] += 1
        self.entity_types[row["entity_type"]] += 1
        self.kinds[row["question_kind"]] += 1
        for blind in row["novelty"]:
            self.novelty.setdefault(blind["model"], Counter())[blind["label"]] += 1
        self.publishers[row["publisher"] or row["source"] or "unknown"] += 1
        self.source_types[row["source_type"] or "unknown"] += 1
        self.writers[row["writer"]["name"]] += 1
        self.articles.add(row["canonical_url"])
        self.answers.add(answer.casefold())
        for gates in row["gates"]:
            for gate in gates:
                self.gates.setdefault(gate["name"], []).append(float(gate["value"]))
        for mask in row["masks"]:
            found = decode_rle(Rle(size=(mask["size"][0], mask["size"][1]), counts=mask["counts"]))
            self.area_shares.append(float(np.count_nonzero(found)) / found.size)
        self.shrunk += bool(row["shrunk"])
        self.portable += bool(row["portable"])
        if isinstance(row["published_at"], datetime):
            day = row["published_at"].date()
            self.first = min(self.first or day, day)
            self.last = max(self.last or day, day)

    @property
    def entities_per_image(self) -> float:
        """Mean number of named entities over distinct pictures, 0 for none."""
        return sum(self.images.values()) / len(self.images) if self.images else 0.0

    @property
    def questions_per_image(self) -> float:
        """Mean number of questions over distinct pictures, 0 for none."""
        return sum(self.asked.values()) / len(self.asked) if self.asked else 0.0
