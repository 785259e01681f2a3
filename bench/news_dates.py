"""Publication dates against htmldate's two evaluation sets (800 and 200 pages).

    python -m bench.news_dates CORPUS [--wrong N]

CORPUS is a checkout of htmldate's repository; nothing of it is kept. A day is right if it is the truth's, as the page
tells its readers (the truth knows no zones). Reported: the best guess, and the dates marked certain, which is what a
window relies on. The peer is htmldate alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from engine.core.schema import DateWitness
from engine.news.decide import told_day
from engine.news.extract import extract_page

LATEST = datetime(2026, 1, 1, tzinfo=UTC)
SETS = {"default (800)": "eval_default.json", "mediacloud (200)": "eval_mediacloud_2020.json"}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--wrong", type=int, default=0, help="show so many wrong ones of each set")
    parser.add_argument("--certain-only", action="store_true", help="of the wrong ones show those marked certain")
    parser.add_argument("--peer", action="store_true", help="also run htmldate alone")
    found = parser.parse_args(argv)
    for name, file in SETS.items():
        _one(found.corpus / "tests", name, file, found.wrong, certain_only=found.certain_only, peer=found.peer)


def _one(root: Path, name: str, file: str, wrong: int, *, certain_only: bool, peer: bool) -> None:
    truth = json.loads((root / file).read_text(encoding="utf-8"))
    right = none = certain = certain_near = certain_right = htmldate_right = 0
    told: list[str] = []
    for url, item in truth.items():
        place = next(p for part in ("test_set", "cache", "eval") if (p := root / part / item["file"]).is_file())
        body = place.read_bytes()
        page = extract_page(body, url, latest=LATEST)
        decision = page.decision
        guess = told_day(decision, page.witnesses)
        if not isinstance(item["date"], str):
            # five pages of the second set have no date: a certain one there is wrong
            right += guess is None
            certain += decision.certain
            continue
        day = date.fromisoformat(item["date"])
        if guess is None:
            none += 1
            if not certain_only:
                told.append(f"  {day} none  {url[:100]} {_said(page.witnesses)}")
            continue
        right += guess == day
        if decision.certain:
            certain += 1
            certain_right += guess == day
            certain_near += abs((guess - day).days) <= 1
        if (abs((guess - day).days) > 1 and decision.certain) if certain_only else guess != day:
            mark = "certain" if decision.certain else decision.problem.value if decision.problem else "uncertain"
            told.append(f"  {day} {guess} {mark} {url[:100]} {_said(page.witnesses)}")
        if peer:
            from htmldate import find_date

            htmldate_right += find_date(body, original_date=True) == item["date"]
    far = certain - certain_near
    print(f"{name}: best guess right {right}, none {none}, wrong {len(truth) - right - none}")
    print(f"  certain {certain}, of these right {certain_right}, far off {far} ({far / max(1, certain):.2%})")
    if peer:
        print(f"  htmldate alone right {htmldate_right}")
    for line in told[:wrong]:
        print(line)


def _said(witnesses: Sequence[DateWitness]) -> str:
    return " ".join(
        f"{w.kind}{'/m' if w.role == 'modified' else ''}{'?' if w.note.startswith('weak') else ''}={w.raw[:25]}"
        for w in witnesses[:8]
    )


if __name__ == "__main__":
    main()
