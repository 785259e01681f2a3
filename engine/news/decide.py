"""From witnesses to one date: which counts, whether it is certain, and whether it lies in a window.

Published beats modified, the page beats an aggregator, what is marked up beats what is guessed. The rules look at the
witnesses alone and never at the window, so that a week gives the same articles in one piece or in two halves; a
witness that says the same day in another zone agrees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from engine.core.schema import Code, DateWitness, Window
from engine.news.page.witnesses import WEAK

#: Witnesses that differ by no more say the same date: time zones reach from -12 to +14 hours around a day.
AGREE = timedelta(hours=38)
_PAGE = ("jsonld", "meta", "time", "url")
_UPPER = ("first_seen", "archive")


@dataclass(frozen=True, slots=True)
class Decision:
    """`published_at` is aware UTC or None. `problem` says why it cannot be relied on: `NO_DATE`, `DATE_WEAK` or
    `DATE_CONFLICT`; with a problem the date, if any, is a best guess."""

    published_at: datetime | None
    precision: Literal["second", "day"] = "second"
    certain: bool = False
    problem: Code | None = None
    detail: str = ""


def is_strong(witness: DateWitness) -> bool:
    """Whether a witness alone may date an article."""
    return (
        witness.credible
        and witness.role == "published"
        and witness.kind in ("jsonld", "meta", "time", "url", "feed", "sitemap")
        and not witness.note.startswith(WEAK)
    )


def agree(a: DateWitness, b: DateWitness) -> bool:
    """Whether two witnesses can speak of one publication: the same instant told in another zone or as a day."""
    if a.precision == "day" and b.precision == "day":
        return abs(a.value - b.value) <= timedelta(days=1)
    if a.precision == "day" or b.precision == "day":
        day, instant = (a, b) if a.precision == "day" else (b, a)
        return timedelta(hours=-14) <= instant.value - day.value <= AGREE
    return abs(a.value - b.value) <= timedelta(hours=26)


def decide(witnesses: Sequence[DateWitness]) -> Decision:
    """Weigh the witnesses. The order of the sequence settles ties, strong page witnesses come first in it."""
    published = [w for w in witnesses if w.role == "published" and w.credible and w.kind not in _UPPER]
    strong = [w for w in published if is_strong(w)]
    page = [w for w in strong if w.kind in _PAGE]
    best = _best(page) or _best(strong) or _best(published)
    if best is None:
        return _undated(witnesses)
    seen = [w for w in witnesses if w.kind in _UPPER and w.value < best.value and not agree(w, best)]
    if seen:
        return _of(
            best, problem=Code.DATE_CONFLICT, detail=f"dated {best.raw}, but seen before, on {seen[0].value:%Y-%m-%d}"
        )
    agreeing = {w.kind for w in published if w is not best and agree(w, best)}
    against = [w for w in strong if not agree(w, best)]
    # the page's own word, told twice, outweighs a feed that says something else
    if len({w.kind for w in page if agree(w, best)}) >= 2:
        against = [w for w in against if w.kind in _PAGE]
    if against:
        told = ", ".join(f"{w.kind} {w.raw}" for w in [best, *against][:3])
        return _of(best, problem=Code.DATE_CONFLICT, detail=f"the witnesses disagree: {told}")
    if best not in strong:
        if len(agreeing - {best.kind}) >= 1:
            return _of(best)
        return _of(best, problem=Code.DATE_WEAK, detail=f"only {best.kind} says so: {best.raw}")
    doubts = [w for w in published if not agree(w, best) and w.kind != "newspaper"]
    return _of(best, certain=bool(agreeing) and not doubts)


def _best(witnesses: Sequence[DateWitness]) -> DateWitness | None:
    """The first by kind, then one with a time of day, then the earliest: what is republished keeps its first date."""
    order = {"jsonld": 0, "meta": 1, "time": 2, "sitemap": 4, "feed": 4, "url": 3}
    ranked = sorted(
        enumerate(witnesses),
        key=lambda pair: (order.get(pair[1].kind, 9), pair[1].precision == "day", pair[0]),
    )
    if not ranked:
        return None
    best = ranked[0][1]
    if best.precision == "day":
        # the same day with its time says more
        timed = next((w for _, w in ranked if w.precision == "second" and agree(w, best)), None)
        return timed or best
    return best


def _undated(witnesses: Sequence[DateWitness]) -> Decision:
    modified = next((w for w in witnesses if w.role == "modified" and w.credible), None)
    if modified is not None:
        return _of(modified, problem=Code.DATE_WEAK, detail=f"only a modified date: {modified.raw}")
    seen = next((w for w in witnesses if w.kind in _UPPER), None)
    if seen is not None:
        return _of(seen, problem=Code.DATE_WEAK, detail=f"only known to have been seen on {seen.value:%Y-%m-%d}")
    return Decision(None, problem=Code.NO_DATE, detail="no date on the page, in the feed or in the URL")


def _of(witness: DateWitness, *, certain: bool = False, problem: Code | None = None, detail: str = "") -> Decision:
    return Decision(witness.value, witness.precision, certain, problem, detail)


def place(decision: Decision, window: Window) -> tuple[Code, str] | None:
    """Why an article does not belong to a window, or None if it does.

    A date that is out is out, whether it is certain or not; a date that is in must also be without a problem.
    """
    if decision.published_at is None:
        return Code.NO_DATE, decision.detail
    if not window.contains(decision.published_at):
        return Code.OUTSIDE_WINDOW, f"published on {decision.published_at:%Y-%m-%d}"
    if decision.problem is not None:
        return decision.problem, decision.detail
    return None
