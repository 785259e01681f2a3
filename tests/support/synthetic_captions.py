"""Captions of synthetic scenes in the wordings that newspapers use for places. Only for tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

ENDS = (
    "at the opening of the fair", "in the studio on Monday", "before the talk began", "at the company's open day",
    "on the stage of the Regent", "during a break in the meeting",
)  # fmt: skip
_ORDINAL = ("", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Spoken:
    """A thing in the picture, in order from the left. Those that are not `named` are passed over in silence."""

    key: str
    name: str
    noun: str
    named: bool
    type: Literal["person", "product"]

    def told(self, *, opening: bool = False) -> str:
        """The name as a caption puts it: people bare, products with article and noun."""
        if self.type == "person":
            return self.name
        return f"{'The' if opening else 'the'} {self.name} {self.noun}"


def caption_for(row: list[Spoken], rng: np.random.Generator) -> tuple[str, dict[str, str]]:
    """The caption, and per key of a named thing its place words ("" if none), in the caption's order."""
    named = [one for one in row if one.named]
    silent = len(named) < len(row)
    end = ENDS[int(rng.integers(len(ENDS)))]
    draw = float(rng.random())
    if draw < 0.12:
        shuffled = [named[int(k)] for k in rng.permutation(len(named))]
        return f"{_joined([one.told(opening=k == 0) for k, one in enumerate(shuffled)])} {end}.", {
            one.key: "" for one in shuffled
        }
    # a list from the left would count the silent one too
    if draw < 0.42 and not silent and len(named) > 1:
        opener = ("From left", "From left to right", "Left to right", "From the left")[int(rng.integers(4))]
        places = _listed(len(named))
        text = f"{opener}: {_joined([one.told() for one in named])} {end}."
        return text, {one.key: place for one, place in zip(named, places, strict=True)}
    places = {one.key: place for one, place in zip(row, _places(len(row), rng), strict=True)}
    brackets = draw > 0.8
    parts = []
    for k, one in enumerate(named):
        place = places[one.key]
        parts.append(f"{one.told(opening=k == 0)} ({place})" if brackets else f"{one.told(opening=k == 0)}, {place},")
    text = _joined(parts) if brackets else _joined([part.rstrip(",") for part in parts]) + ","
    return f"{text} {end}.", {one.key: places[one.key] for one in named}


def _joined(parts: list[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _listed(count: int) -> list[str]:
    return ["left", *[f"{_ORDINAL[k]} from left" for k in range(1, count - 1)], "right"]


def _places(count: int, rng: np.random.Generator) -> list[str]:
    """Place words for each of `count` things in a row, as seen."""
    far = "far " if count > 2 and rng.random() < 0.4 else ""
    if count == 1:
        return ["centre"]
    if count == 2:
        return ["left", "right"]
    if count == 3:
        middle = ("centre", "middle", "second from left", "second from right")[int(rng.integers(4))]
        return [f"{far}left", middle, f"{far}right"]
    inner = [
        f"{_ORDINAL[k]} from left" if k < count / 2 else f"{_ORDINAL[count - 1 - k]} from right"
        for k in range(1, count - 1)
    ]
    return [f"{far}left", *inner, f"{far}right"]
