"""WebSense's first level: word lists that speak for or against a search, with weights.

The paper names the idea (time-sensitive words) and gives no list; these are ours. A `*` stands for any ending.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from inference.segmenters.phrases import is_question


@dataclass(frozen=True, slots=True)
class Rule:
    """A name for the trace, what it looks for, and how much it speaks."""

    name: str
    pattern: re.Pattern[str]
    weight: float


def _rule(name: str, weight: float, listed: str) -> Rule:
    """A rule of words and phrases separated by commas, whole words, any case."""
    parts = [re.escape(part.strip()).replace(r"\*", r"\w*") for part in listed.split(",") if part.strip()]
    return Rule(name, re.compile(rf"\b(?:{'|'.join(parts)})\b", re.IGNORECASE), weight)


FOR: Sequence[Rule] = (
    _rule(
        "time",
        2.0,
        """today, yesterday, tonight, recent, recently, latest, newest, current, currently, nowadays, upcoming,
        this week, this month, this year, this season, this summer, this winter, this spring, this autumn, last week,
        last month, last year, last season, last night, on monday, on tuesday, on wednesday, on thursday, on friday,
        on saturday, on sunday, last monday, last friday, last saturday, last sunday, in january, in february,
        in march, in april, in may, in june, in july, in august, in september, in october, in november, in december,
        since january, of march, of april, weekly, just won, just been, just named, just released""",
    ),
    Rule("year", re.compile(r"\b(?:19|20)\d{2}\b"), 2.0),
    _rule(
        "office",
        1.5,
        """president, prime minister, minister, chancellor, governor, mayor, senator, ceo, chief executive, chairman,
        chairwoman, chairperson, secretary, ambassador, commissioner, director, head coach, captain of, founder,
        co-founder, king, queen, pope, leader of, commissioner, speaker of, head of""",
    ),
    _rule(
        "event",
        1.5,
        """won, wins, winning, defeated, defeats, beat, elected, re-elected, appointed, nominated, sworn in, resign*,
        signed, announced, launched, released, unveiled, debuted, premiered, retired, retires, arrested, charged with,
        sued, convicted, acquired, merged, performed at, starred in, stars in, directed, hosted, received, awarded,
        broke the, record, scored, champion, championship, tournament, election, summit, festival, ceremony, award,
        prize, verdict, trial, deal with, merger, tariff*, strike, protest*, mission, commanded, met with, visited,
        joined, named, founded, co-founded, led the, became, inaugurat*, testified, sentenced, wrote, invented,
        developed, introduced, presented, opened, criticised, criticized, proposed, vetoed, banned, transferred""",
    ),
    _rule(
        "release",
        1.0,
        """model year, edition, version, generation, brand, manufacturer, made by, maker of, product of, costs, priced,
        on sale, went on sale, recalled, recall, trailer, album, chip, console, franchise, goes on sale, sold by,
        produced by, built by, published by""",
    ),
    # a capitalised word that does not begin the sentence
    Rule("name", re.compile(r"(?<=[a-z,\d] )(?!I\b)[A-Z][\w'’.-]+"), 1.5),
    Rule(
        "who",
        re.compile(r"^\s*(?:who\b|which (?:person|politician|athlete|player|actor|actress|singer)\b)", re.IGNORECASE),
        0.5,
    ),
)

AGAINST: Sequence[Rule] = (
    _rule(
        "place in the picture",
        1.5,
        """left, right, leftmost, rightmost, middle, center, centre, top, bottom, front, back, behind, next to,
        closest, nearest, farthest, furthest, foreground, background, corner, beside, between, under, above, facing,
        partially, second from, third from, far away, near the, close to""",
    ),
    _rule(
        "looks",
        1.5,
        """wearing, holding, sitting, standing, red, blue, green, yellow, black, white, brown, gray, grey, orange,
        pink, purple, striped, plaid, tall, tallest, small, smallest, big, biggest, large, largest, shirt, jacket,
        hat, hair, glasses, beard, dress, pants, jeans, shorts, umbrella, guy, lady, kid, dude, looking, smiling,
        eating, bald, dark, light, wooden, round""",
    ),
    _rule(
        "general use",
        1.5,
        """used for, used to, used as, could be, could have, can be, can help, can we, can you, can one, can people,
        might, would, most likely, suitable, in order to, responsible for, helps, something that, what part,
        what object, what item, what thing, what area, what structure, what kind, what feature, what in the,
        which part, which object, which item, which thing, which area, which structure, which feature, which animal,
        which piece, where can, where could, where would, where should, the object that, the part that, the item that,
        the place where, the thing that, the area where, the area that, the part of, typically, commonly, usually,
        indicates, indicate, suggests, suggest, needs to, need to, if we, if you, if someone, purpose, dangerous,
        safety, protect, designed to, designed for, allows, provides, enables, prevent*, able to""",
    ),
    Rule("a bare phrase", re.compile(r"^[^?A-Z]{1,60}$"), 1.0),
)
#: The side that leads by this much decides.
LEAD = 1.0


def by_rules(question: str) -> tuple[bool | None, str]:
    """True or False where the rules are sure, None where they are not; and the rules that spoke."""
    flat = " ".join(question.split())
    spoke_for = [rule for rule in FOR if rule.pattern.search(flat)]
    spoke_against = [rule for rule in AGAINST if rule.pattern.search(flat)]
    lead = sum(rule.weight for rule in spoke_for) - sum(rule.weight for rule in spoke_against)
    if not is_question(flat):
        lead -= 0.5
    reason = f"for: {_names(spoke_for)}; against: {_names(spoke_against)}"
    if lead >= LEAD:
        return True, reason
    if lead <= -LEAD:
        return False, reason
    return None, reason


def _names(spoke: Sequence[Rule]) -> str:
    return ", ".join(rule.name for rule in spoke) or "nothing"
