"""Figures of one window for the screen: how hard its masks were, its scores, its cost, and what runs out.

Plain JSON in, plain values out; nothing is computed twice and nothing heavy is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from flows.ranking import rank
from flows.status.weeks import Week, read_json, read_lines, stage_folder


@dataclass(frozen=True, slots=True)
class Candidates:
    """Of the accepted images: how many have one candidate box, and what a random candidate would score.

    `chance` is the mean over images of the mean overlap (IoU) of every candidate box with the chosen one; a random
    box with the same mask model scores about this, since the chosen box gives the mask itself and another one a mask
    that overlaps about as the boxes do.
    """

    images: int
    single: int
    chance: float | None


@dataclass(frozen=True, slots=True)
class Score:
    """A segmenter's gIoU with its interval, and its failures apart."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    units: int
    failed: int
    missing: int


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars of the last seven days, of the calendar month (UTC), and per row of the window; calls without a
    known price are counted apart. Hours are those of the workers' shards."""

    week_usd: float
    month_usd: float
    row_usd: float | None
    unpriced: int
    annotate_h: float
    score_h: float


def candidates(home: Path, week: Week) -> Candidates | None:
    """Read from the annotations that the snapshot was made from; None where there are none."""
    folder = stage_folder(home, week, "annotate")
    if folder is None:
        return None
    images = single = 0
    total = 0.0
    for line in read_lines(folder / "part-00000.jsonl"):
        for image in line.get("images", ()):
            boxes, chosen = image.get("candidates", []), image.get("binding", {}).get("candidate", -1)
            if not 0 <= chosen < len(boxes):
                continue
            images += 1
            single += len(boxes) == 1
            total += sum(_iou(box, boxes[chosen]) for box in boxes) / len(boxes)
    return Candidates(images, single, total / images if images else None)


def scores(home: Path, week: Week) -> list[Score]:
    """Overall figures of the report of the present revision that ranks first, best first; none of an earlier one,
    whose rows were others."""
    reports = [read_json(path) for path in sorted((home / "reports" / week.name).glob("*/report.json"))]
    present = [told for told in reports if told.get("revision") == week.snapshot.get("revision")]
    if not present:
        return []
    report = max(
        present, key=lambda told: (*rank((r["missing"], r["units"]) for r in _overall(told)), str(told.get("digest")))
    )
    found = []
    for row in _overall(report):
        figure = row.get("figures", {}).get("giou") or {}
        found.append(
            Score(
                row["segmenter"],
                figure.get("value"),
                figure.get("low"),
                figure.get("high"),
                row["units"],
                row["failed"],
                row["missing"],
            )
        )
    return sorted(found, key=lambda one: (-(one.value or 0.0), one.name))


def _overall(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A report's rows of segmenters over everything, against its first truth."""
    first = (report.get("truths") or [{}])[0].get("name")
    rows = report.get("rows", ())
    return [row for row in rows if not row.get("split") and row.get("kind") != "baseline" and row.get("truth") == first]


def cost(home: Path, week: Week | None, *, now: datetime) -> Cost:
    """From the ledger's files and the shards' run records."""
    weekly = monthly = 0.0
    unpriced = 0
    asked = 0.0
    span = _asked_between(home, week) if week is not None else None
    months = {f"{now:%Y-%m}", f"{now - timedelta(days=7):%Y-%m}", *(f"{at:%Y-%m}" for at in span or ())}
    for month in sorted(months):
        for line in read_lines(home / "ledger" / f"{month}.jsonl"):
            at = _instant(line.get("at"))
            if at is None:
                continue
            usd = line.get("usd")
            unpriced += usd is None and at >= now - timedelta(days=7)
            paid = float(usd or 0.0)
            weekly += paid if now - timedelta(days=7) <= at <= now else 0.0
            monthly += paid if f"{at:%Y-%m}" == f"{now:%Y-%m}" else 0.0
            asked += paid if span is not None and span[0] <= at <= span[1] else 0.0
    rows = week.rows if week is not None else None
    folder = stage_folder(home, week, "annotate") if week is not None else None
    annotate = sum(_seconds(folder.glob("shards/*/run.json"))) if folder else 0.0
    predictions = home / "predictions" / (week.name if week else "-")
    return Cost(
        weekly,
        monthly,
        asked / rows if rows and span else None,
        unpriced,
        annotate / 3600,
        sum(_seconds(predictions.glob("*/*/shards/*/run.json"))) / 3600,
    )


def keys(expires: Mapping[str, date], *, today: date) -> list[tuple[str, int]]:
    """Days until each key or token runs out, soonest first; negative once it did."""
    return sorted(((name, (day - today).days) for name, day in expires.items()), key=lambda pair: (pair[1], pair[0]))


def open_takedowns(home: Path, *, now: datetime) -> list[int]:
    """Ages in days of takedowns that could not be finished: those without a finished one after them that went over
    the same repositories."""
    receipts = sorted(
        (told for path in (home / "receipts").glob("takedown-*.json") if (told := read_json(path))),
        key=lambda told: str(told.get("at")),
    )
    ages = []
    for place, receipt in enumerate(receipts):
        if not receipt.get("failures"):
            continue
        repositories = set(receipt.get("repositories", ()))
        later = [told for told in receipts[place + 1 :] if repositories <= set(told.get("repositories", ()))]
        at = _instant(receipt.get("at"))
        if not later:
            ages.append(max(0, (now - at).days) if at else 0)
    return sorted(ages, reverse=True)


def source_links(home: Path, week: Week, names: Sequence[str]) -> dict[str, int]:
    """Links that each source showed for a window; {} where it was not collected."""
    folder = stage_folder(home, week, "collect")
    if folder is None:
        return {}
    try:
        data = (folder / "found" / "part-00000.jsonl").read_bytes()
    except OSError:
        return {}
    # counted in the text: canonical JSON has each source once per link, and years of weeks must not be parsed
    return {name: data.count(b'"source":' + json.dumps(name, ensure_ascii=False).encode()) for name in names}


def _asked_between(home: Path, week: Week) -> tuple[datetime, datetime] | None:
    folder = stage_folder(home, week, "ask")
    if folder is None:
        return None
    ends = []
    for path in [*folder.glob("shards/*/run.json"), folder / "run.json"]:
        told = read_json(path)
        at = _instant(told.get("finished_at"))
        if at is not None:
            ends.append((at - timedelta(seconds=float(told.get("seconds", 0.0)) + 1), at + timedelta(seconds=1)))
    return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else None


def _seconds(paths: Iterator[Path]) -> Iterator[float]:
    return (float(read_json(path).get("seconds") or 0.0) for path in paths)


def _instant(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _iou(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    width = min(one["x2"], other["x2"]) - max(one["x1"], other["x1"])
    height = min(one["y2"], other["y2"]) - max(one["y1"], other["y1"])
    both = max(0.0, width) * max(0.0, height)
    whole = sum((box["x2"] - box["x1"]) * (box["y2"] - box["y1"]) for box in (one, other)) - both
    return both / whole if whole > 0 else 0.0
