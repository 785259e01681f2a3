"""The status on one screen: 24 lines of at most 80 characters, in colours where a terminal takes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from flows.status.facts import Score
from flows.status.gather import Status
from flows.status.weeks import COLUMNS, STAGES

WIDTH, HEIGHT = 80, 24
#: A count this share below its median is amber, and red.
AMBER, RED = 0.25, 0.5
#: A share of wrong rows above this is amber, and red: the first is what none of 150 bounds.
WRONG_AMBER, WRONG_RED = 0.02, 0.05
LABEL = 10
ANSI = {"green": "32", "amber": "33", "red": "31", "dim": "2", "bold": "1"}


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a line and its colour: green, amber, red, dim, bold, or none."""

    text: str
    colour: str = ""


Line = tuple[Part, ...]


def lines(status: Status) -> list[Line]:
    """Exactly `HEIGHT` lines, none longer than `WIDTH`."""
    found = [
        _head(status),
        _home(status),
        _stages(status),
        *_counts(status),
        _lost(status),
        *_sources(status),
        _review(status),
        _single(status),
        _chance(status),
        _anchors(status),
        _best(status),
        _failed(status),
        _cost(status),
        _hours(status),
        _keys(status),
        _takedowns(status),
        _hub(status),
        _before(status),
        _line("next", Part(status.next, "bold")),
    ]
    assert len(found) == HEIGHT, len(found)
    return [_cut(line) for line in found]


def render(found: Sequence[Line], *, colours: bool) -> str:
    """The lines as text, with ANSI colours or without."""

    def one(part: Part) -> str:
        if not colours or not part.colour:
            return part.text
        return f"\x1b[{ANSI[part.colour]}m{part.text}\x1b[0m"

    return "\n".join("".join(one(part) for part in line).rstrip() for line in found)


def wants_colours() -> bool:
    """Whether stdout is a terminal that shows colours, and nobody asked for none (`NO_COLOR`)."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def _line(label: str, *parts: Part) -> Line:
    return (Part(f"{label:<{LABEL}}", "dim"), *parts)


def _cut(line: Line) -> Line:
    """The line without what would not fit; a cut shows as two dots."""
    left = WIDTH
    kept = []
    for part in line:
        text = "".join(char if char.isprintable() else " " for char in part.text)
        if len(text) > left:
            kept.append(Part(text[: max(0, left - 2)].rstrip() + ".." if left >= 2 else "", part.colour))
            break
        kept.append(Part(text, part.colour))
        left -= len(text)
    return tuple(kept)


def _head(status: Status) -> Line:
    week = status.week
    if week is None:
        return _spread(Part("NEST  no window yet", "bold"), f"{status.now:%Y-%m-%d}")
    first, last = (datetime.strptime(f"{part} +0000", "%y%m%d %z") for part in week.label.split("_"))
    told = f"NEST  {week.label}  {first:%d %B %Y} to {last:%d %B %Y}" + (f"  {week.pilot[1:]}" if week.pilot else "")
    return _spread(Part(told, "bold"), f"{status.now:%Y-%m-%d}")


def _spread(left: Part, right: str) -> Line:
    return (left, Part(" " * max(2, WIDTH - len(left.text) - len(right))), Part(right, "dim"))


def _home(status: Status) -> Line:
    built = sum(bool(week.snapshot) and not week.pilot for week in status.weeks)
    told = f"  {len(status.weeks)} windows, {built} snapshots"
    room = WIDTH - LABEL - len(told)
    where = status.home if len(status.home) <= room else ".." + status.home[-(room - 2) :]
    line = _line("home", Part(where), Part(told, "dim"))
    return (*line[:2], Part("  " + status.problems[0], "red")) if status.problems else line


def _stages(status: Status) -> Line:
    week = status.week
    if week is None:
        return _line("stages", Part("none", "dim"))
    parts = []
    for stage in STAGES:
        if stage == "push" and not status.hub.repo:
            parts.append(Part("(push)  ", "dim"))
            continue
        word = str(week.snapshot.get("revision")) if stage == "snapshot" else "ok"
        parts.append(Part(f"{stage} {word}  ", "green") if stage in week.done else Part(f"{stage} -  ", "amber"))
    return _line("stages", *parts)


def _counts(status: Status) -> list[Line]:
    week = status.week
    head = _line("", *(Part(f"{title:>11}", "dim") for title, _, _ in COLUMNS))
    own, usual, change = [], [], []
    for title, _, _ in COLUMNS:
        count = week.counts.get(title) if week else None
        before = status.usual.get(title)
        own.append(Part(f"{_number(count):>11}", "bold"))
        usual.append(Part(f"{_number(before):>11}"))
        if count is None or not before:
            change.append(Part(f"{'-':>11}", "dim"))
            continue
        off = count / before - 1
        change.append(
            Part(f"{f'{100 * off:+.0f} %':>11}", "red" if off < -RED else "amber" if off < -AMBER else "green")
        )
    return [head, _line("this week", *own), _line("median 4", *usual), _line("change", *change)]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _lost(status: Status) -> Line:
    week = status.week
    top = sorted(week.lost.items(), key=lambda item: (-item[1], item[0]))[:5] if week else []
    names = [code for code, _ in top]
    numbers = [str(count) for _, count in top]
    # five codes have to fit: the longest names give way, numbers do not
    while sum(len(name) + len(number) + 1 for name, number in zip(names, numbers, strict=True)) > 72 - 2 * len(top):
        longest = max(range(len(names)), key=lambda place: len(names[place]))
        names[longest] = names[longest].removesuffix("..")[:-1] + ".."
    told = "  ".join(f"{number} {name}" for number, name in zip(numbers, names, strict=True))
    return _line("lost most", Part(told) if told else Part("nothing", "dim"))


def _sources(status: Status) -> list[Line]:
    counts = {
        state: sum(s.state == state for s in status.sources) for state in ("green", "amber", "red", "grey", "paused")
    }
    colours = {"grey": "dim", "paused": "dim"}
    head = [Part(f"{count} {state}  ", colours.get(state, state)) for state, count in counts.items() if count]
    if status.gaps:
        head.append(Part(f"{status.gaps} gap{'s' if status.gaps > 1 else ''} between harvest rounds", "amber"))
    worst = sorted((s for s in status.sources if s.state in ("red", "amber")), key=lambda s: (s.state != "red", s.name))
    told = [_line("", Part(f"{s.name}: {s.why}", s.state)) for s in worst[:2]]
    if len(worst) > 2:
        rest = ", ".join(s.name for s in worst[1:])
        told[1] = _line("", Part(f"{len(worst) - 1} more: {rest}", "red" if worst[1].state == "red" else "amber"))
    return [_line("sources", *(head or [Part("none", "amber")])), *told, *[_line("")] * (2 - len(told))]


def _review(status: Status) -> Line:
    review = status.review
    if review is None or not review.random.judged:
        return _line("review", Part("not reviewed", "amber" if status.week and status.week.snapshot else "dim"))
    found = review.random
    assert found.bounds is not None
    low, high = (100 * bound for bound in found.bounds)
    share = found.wrong / found.judged
    colour = "red" if share > WRONG_RED else "amber" if share > WRONG_AMBER else "green"
    told = f"at most {high:.1f} %" if not found.wrong else f"{100 * share:.1f} % ({low:.1f} to {high:.1f})"
    rest = f"  {review.revision}, {len(review.reviewers)} reviewer{'s' if len(review.reviewers) != 1 else ''}"
    return _line("review", Part(f"{found.wrong} of {found.judged} wrong: {told}", colour), Part(rest, "dim"))


def _single(status: Status) -> Line:
    found = status.candidates
    if found is None or not found.images:
        return _line("one box", Part("-", "dim"))
    return _line(
        "one box", Part(f"{100 * found.single / found.images:.0f} % of {found.images} images have a single candidate")
    )


def _chance(status: Status) -> Line:
    found = status.candidates
    if found is None or found.chance is None:
        return _line("chance", Part("-", "dim"))
    return _line(
        "chance",
        Part(f"a random candidate with SAM would score gIoU {100 * found.chance:.1f}"),
        Part("  (boxes)", "dim"),
    )


def _anchors(status: Status) -> Line:
    if not status.anchors:
        return _line("anchors", Part("none named in [score] anchors", "dim"))
    by_name = {score.name: score for score in status.scores}
    return _line("anchors", *(_score(name, by_name) for name in status.anchors))


def _best(status: Status) -> Line:
    rest = [score for score in status.scores if score.name not in status.anchors][:2]
    by_name = {score.name: score for score in rest}
    return _line("best", *(_score(score.name, by_name) for score in rest) if rest else (Part("not scored", "dim"),))


def _score(name: str, found: dict[str, Score]) -> Part:
    score = found.get(name)
    if score is None or score.value is None:
        return Part(f"{name} not scored  ", "amber")
    span = "" if score.low is None or score.high is None else f" ({100 * score.low:.1f} to {100 * score.high:.1f})"
    return Part(f"{name} {100 * score.value:.1f}{span}  ")


def _failed(status: Status) -> Line:
    if not status.scores:
        return _line("failed", Part("-", "dim"))
    units = sum(score.units for score in status.scores)
    failed, missing = (sum(getattr(score, name) for score in status.scores) for name in ("failed", "missing"))
    worst = max(status.scores, key=lambda score: score.failed + score.missing)
    colour = "green" if not failed + missing else "red" if failed + missing > 0.05 * units else "amber"
    who = f", {worst.failed + worst.missing} of them {worst.name}" if failed + missing else ""
    return _line("failed", Part(f"{failed} failed, {missing} missing of {units} pairs{who}", colour))


def _cost(status: Status) -> Line:
    found = status.cost
    month = f"${found.month_usd:.2f} this month"
    colour = ""
    if status.monthly_usd:
        month += f" of ${status.monthly_usd:.2f}"
        used = found.month_usd / status.monthly_usd
        colour = "red" if used >= 1 else "amber" if used > 0.8 else "green"
    row = f"${found.row_usd:.4f} a row" if found.row_usd is not None else "no cost a row"
    parts = [Part(f"${found.week_usd:.2f} in 7 days  "), Part(month + "  ", colour), Part(row)]
    if found.unpriced:
        parts.append(Part(f"  {found.unpriced} unpriced", "amber"))
    return _line("cost", *parts)


def _hours(status: Status) -> Line:
    found = status.cost
    told = f"{found.annotate_h:.2f} h annotate, {found.score_h:.2f} h score"
    return _line("GPU hours", Part(told), Part("  (on the CPU: portable annotator)" if status.portable else "", "dim"))


def _keys(status: Status) -> Line:
    if not status.keys:
        return _line("keys", Part("no expiry named in [credentials] expires", "dim"))
    parts = []
    for name, days in status.keys:
        told = f"{name} expired {-days} d ago  " if days < 0 else f"{name} {days} d  "
        parts.append(Part(told, "red" if days < 0 else "amber" if days <= status.warn_days else "green"))
    return _line("keys", *parts)


def _takedowns(status: Status) -> Line:
    if not status.takedowns:
        return _line("takedowns", Part("none open", "green"))
    word = f"{len(status.takedowns)} open, the oldest for {status.takedowns[0]} days: repeat it"
    return _line("takedowns", Part(word, "red"))


def _hub(status: Status) -> Line:
    hub = status.hub
    if hub.equal is None:
        return _line("Hub", Part(hub.note, "dim"))
    told = "equal: yes" if hub.equal else "equal: no"
    return _line("Hub", Part(told, "green" if hub.equal else "red"), Part(f"  {hub.repo}, {hub.note}", "dim"))


def _before(status: Status) -> Line:
    weeks = [week for week in status.weeks if not week.pilot][-9:-1]
    if not weeks:
        return _line("rows then", Part("no earlier window", "dim"))
    return _line("rows then", *(Part(f"{_number(week.rows):>7} ", "" if week.snapshot else "amber") for week in weeks))
