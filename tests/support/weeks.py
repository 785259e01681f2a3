"""A home with many simulated weeks: what stages, snapshots, scores, ledger and harvest leave behind.

Only files are written, in the forms that the stages write; nothing is computed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

LAST_DAY = date(2026, 11, 22)
NOW = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
SOURCES = {"herald": 40, "courier": 25, "voice": 60, "tribune": 12}


def label(weeks_ago: int, last: date = LAST_DAY) -> str:
    """The window that ended so many weeks before `last`."""
    end = last - timedelta(days=7 * weeks_ago)
    return f"{end - timedelta(days=6):%y%m%d}_{end:%y%m%d}"


def simulate(
    home: Path,
    *,
    weeks: int = 60,
    rows: int = 400,
    dark: str = "",
    drop: float = 1.0,
    now: datetime = NOW,
    score_units: int = 400,
) -> list[str]:
    """Write the weeks; the last one has only `drop` of the usual yield, and the source `dark` shows nothing in it."""
    rng = random.Random(7)
    labels = [label(ago) for ago in range(weeks - 1, -1, -1)]
    for place, name in enumerate(labels):
        last = place == weeks - 1
        chance = rng.uniform(0.95, 1.05)
        links = {s: (0 if last and s == dark else round(n * chance)) for s, n in SOURCES.items()}
        kept = round(rows * chance * (drop if last else 1.0))
        _week(home, name, links, kept, detailed=place >= weeks - 6, units=score_units)
    _ledger(home, now)
    _harvest(home, now, dark)
    return labels


def _week(home: Path, name: str, links: Mapping[str, int], rows: int, *, detailed: bool, units: int) -> None:
    found = sum(links.values())
    steps = [
        {"stage": "find", "found": found, "kept": found - 4, "rejected": {"link_unresolved": 4}},
        {"stage": "collect", "found": found - 4, "kept": rows // 2, "rejected": {"outside_window": found // 3}},
        {"stage": "images", "found": 2 * rows, "kept": rows, "rejected": {"no_caption": rows, "image_too_small": 9}},
        {"stage": "ask", "found": 2 * rows, "kept": rows + 30, "rejected": {"private_person": rows // 5}},
        {"stage": "annotate", "found": rows + 30, "kept": rows, "rejected": {"unbound": 21, "binding_tie": 9}},
        {"stage": "snapshot", "found": rows, "kept": rows, "rejected": {}},
    ]
    window = home / "windows" / name
    _finish(window / "collect" / "c1", steps[1], [])
    _finish(
        window / "collect" / "c1" / "found",
        steps[0],
        [{"url": f"https://{s}.example/{n}", "source": s} for s, count in links.items() for n in range(count)],
    )
    _finish(window / "ask" / "a1", steps[3], [])
    boxes = [_box(0, 0, 10, 10), _box(5, 0, 15, 10), _box(30, 30, 40, 40)]
    images = [{"candidates": boxes[: 1 + n % 3], "binding": {"candidate": 0}} for n in range(rows)]
    _finish(window / "annotate" / "m1", steps[4], [{"id": str(n), "images": [one]} for n, one in enumerate(images)])
    _write(window / "annotate" / "m1" / "shards" / "00000" / "run.json", {"seconds": 5400.0})
    _write(
        home / "snapshots" / f"NEST_{name}" / "snapshot.json",
        {
            "name": f"NEST_{name}",
            "window": name,
            "revision": "r1",
            "rows": rows,
            "funnel": steps,
            "supersedes": None,
            "digest": f"d-{name}",
        },
    )
    if detailed:
        figures = [("grounded-sam", 0.45, 3), ("rose:grounded-sam", 0.61, 0), ("lisa", 0.38, 1)]
        _write(
            home / "reports" / f"NEST_{name}" / "s1" / "report.json",
            {
                "revision": "r1",
                "digest": name,
                "truths": [{"name": "snapshot"}],
                "segmenters": [{"name": n} for n, _, _ in figures],
                "rows": [
                    {
                        "segmenter": n,
                        "kind": "segmenter",
                        "truth": "snapshot",
                        "split": "",
                        "units": units,
                        "failed": failed,
                        "missing": 0,
                        "figures": {"giou": {"value": value, "low": value - 0.04, "high": value + 0.04}},
                    }
                    for n, value, failed in figures
                ],
                "units": [{"sample": list(range(units)), "iou": [0.5] * units} for _ in figures],
            },
        )


def _finish(folder: Path, step: Mapping[str, Any], lines: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n" for line in lines)
    (folder / "part-00000.jsonl").write_text(text)
    (folder / "rejected.jsonl").write_text("")
    _write(folder / "run.json", {"seconds": 60.0, "finished_at": "2026-11-24T04:00:00+00:00"})
    _write(folder / "manifest.json", {"stage": step["stage"], "funnel": step, "files": {}})


def _box(x1: float, y1: float, x2: float, y2: float) -> dict[str, float]:
    return {"x1": x1, "y1": y1, "x2": x2, "y2": y2}


def _write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def _ledger(home: Path, now: datetime) -> None:
    folder = home / "ledger"
    folder.mkdir(parents=True, exist_ok=True)
    for day in range(60):
        at = (now - timedelta(days=day)).replace(hour=3, minute=59, second=30)
        line = {"at": at.isoformat(), "kind": "llm", "usd": 0.5}
        with (folder / f"{at:%Y-%m}.jsonl").open("a") as handle:
            handle.write(json.dumps(line) + "\n")


def _harvest(home: Path, now: datetime, dark: str) -> None:
    path = home / "harvest" / "rounds.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        for back in range(28 * 4, -1, -1):
            at = now - timedelta(hours=6 * back)
            gone = back < 8
            sources = [
                [
                    s,
                    0 if s == dark and gone else 20,
                    0 if s == dark and gone else 3,
                    "timeout" if gone and s == dark else "",
                ]
                for s in SOURCES
            ]
            handle.write(json.dumps({"at": at.isoformat(), "sources": sources}) + "\n")
