"""Kinds of evidence, each a small function: which of the candidates does it speak for, and how clearly?

An `Opinion` gives each eligible candidate a score from 0 to 1 and the lead of the best one over the next. A kind that
knows nothing returns None. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.geometry import Box, Image
from segmentation.binding.candidates import Named, Scene
from segmentation.binding.places import Place, read_colour, read_place


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one kind of evidence says of one name: scores by candidate, and the lead of the best one (0 to 1)."""

    kind: str
    scores: Mapping[int, float]
    lead: float
    detail: str = ""

    @property
    def choice(self) -> int:
        return min(self.scores, key=lambda index: (-self.scores[index], index))


def sole(scene: Scene, name: Named) -> Opinion | None:
    """One name of its phrase and one box of it: certain by construction. The lead is the detector's score."""
    eligible = scene.eligible(name)
    same = [other for other in scene.names if other.entity.phrase == name.entity.phrase]
    if len(eligible) != 1 or len(same) != 1:
        return None
    score = scene.candidates[eligible[0]].phrases[name.entity.phrase]
    return Opinion("sole", {eligible[0]: score}, score, "one name, one box")


def count(scene: Scene) -> bool:
    """As many boxes as names for every phrase: then every box is somebody, and place words mean what they say."""
    return _surplus(scene) == {0}


def _surplus(scene: Scene) -> set[int]:
    """How many more boxes than names there are, over the phrases."""
    phrases = {name.entity.phrase: name for name in scene.names}
    named = [name.entity.phrase for name in scene.names]
    return {len(scene.eligible(name)) - named.count(phrase) for phrase, name in phrases.items()}


def position(scene: Scene, name: Named) -> Opinion | None:
    """The caption's own place words against the order of all boxes; silent if somebody was not found."""
    place = read_place(name.entity.position)
    pool = scene.pool()
    eligible = scene.eligible(name)
    if place is None or not eligible or len(pool) < 2 or min(_surplus(scene)) < 0:
        return None
    boxes = {index: scene.candidates[index].box for index in pool}
    chosen, lead = _placed(place, boxes, scene.image.shape[1])
    if chosen is None or (chosen not in eligible and not count(scene)):
        return None  # a stranger stands there
    scores = {index: 1.0 if index == chosen else 1.0 - lead for index in {*eligible, chosen}}
    return Opinion("position", scores, lead, f"'{name.entity.position}' among {len(pool)} boxes")


def order(scene: Scene, name: Named) -> Opinion | None:
    """Names without any place words, as many as boxes of their phrase: captions usually go from left to right.

    A habit, not a statement: it only ever supports another kind.
    """
    same = sorted(
        (other for other in scene.names if other.entity.phrase == name.entity.phrase),
        key=lambda other: other.entity.order,
    )
    eligible = scene.eligible(name)
    if len(same) < 2 or len(same) != len(eligible) or any(other.entity.position for other in scene.names):
        return None
    rank = next(index for index, other in enumerate(same) if other.entity == name.entity)
    boxes = {index: scene.candidates[index].box for index in eligible}
    chosen, lead = _placed(Place("from_left", rank + 1), boxes, scene.image.shape[1])
    if chosen is None:
        return None
    scores = {index: 1.0 if index == chosen else 1.0 - lead for index in eligible}
    return Opinion("order", scores, 0.5 * lead, f"name {rank + 1} of {len(same)}, left to right")


def colour(scene: Scene, name: Named) -> Opinion | None:
    """A colour the caption says somebody wears ("in red"), as the share of the box's middle that has it."""
    wanted = read_colour(name.entity.position)
    eligible = scene.eligible(name)
    if wanted is None or len(eligible) < 2:
        return None
    scores = {index: _share_of(wanted, scene.candidates[index].box.crop(scene.image)) for index in eligible}
    ranked = sorted(scores.values(), reverse=True)
    lead = (ranked[0] - ranked[1]) / max(ranked[0], 1e-6) if ranked[0] >= 0.1 else 0.0
    return Opinion("colour", scores, lead, f"'{wanted}'")


def resemblance(
    scene: Scene, name: Named, *, kind: str, compare: Callable[[Named, int], float], floor: float
) -> Opinion | None:
    """References against crops: how alike is each candidate to this name, and to the other names?

    `compare` gives a similarity from 0 to 1. The lead is the smaller of two: over this name's other candidates, and
    over what the other names' references say of the same candidate. Below `floor` nothing is recognised.
    """
    eligible = scene.eligible(name)
    if not eligible or not name.references:
        return None
    scores = {index: min(1.0, max(0.0, compare(name, index))) for index in eligible}
    best = min(scores, key=lambda index: (-scores[index], index))
    if scores[best] < floor:
        return None
    second = max((score for index, score in scores.items() if index != best), default=0.0)
    rivals = [
        compare(other, best)
        for other in scene.names
        if other.entity != name.entity and other.references and best in scene.eligible(other)
    ]
    lead = min(scores[best] - second, scores[best] - max(rivals, default=0.0))
    return Opinion(kind, scores, float(min(1.0, max(0.0, lead))), f"{len(name.references)} references")


def _placed(place: Place, boxes: Mapping[int, Box], width: int) -> tuple[int | None, float]:
    """The box a place means, and how clearly (0 to 1): the gap to its neighbour in shares of a mean box width."""
    unit = max(1.0, 0.35 * float(np.mean([box.width for box in boxes.values()])))
    if place.kind in ("from_left", "from_right"):
        ordered = sorted(boxes, key=lambda index: (boxes[index].center[0], index))
        if place.kind == "from_right":
            ordered.reverse()
        if place.rank > len(ordered):
            return None, 0.0
        chosen = ordered[place.rank - 1]
        return chosen, _gap(chosen, {index: boxes[index].center[0] for index in boxes}, unit)
    if place.kind == "centre":
        if len(boxes) % 2 == 1:
            ordered = sorted(boxes, key=lambda index: (boxes[index].center[0], index))
            chosen = ordered[len(ordered) // 2]
            return chosen, _gap(chosen, {index: boxes[index].center[0] for index in boxes}, unit)
        values = {index: abs(boxes[index].center[0] - width / 2) for index in boxes}
    elif place.kind in ("top", "bottom"):
        sign = 1.0 if place.kind == "top" else -1.0
        values = {index: sign * boxes[index].center[1] for index in boxes}
    else:  # nearer things are larger
        sign = -1.0 if place.kind == "front" else 1.0
        values = {index: sign * float(np.sqrt(boxes[index].area)) for index in boxes}
    chosen = min(values, key=lambda index: (values[index], index))
    return chosen, _gap(chosen, values, unit)


def _gap(chosen: int, values: Mapping[int, float], unit: float) -> float:
    others: Sequence[float] = [abs(values[index] - values[chosen]) for index in values if index != chosen]
    return float(min(1.0, min(others, default=unit) / unit))


def _share_of(colour_word: str, crop: Image) -> float:
    import cv2

    height, width = crop.shape[:2]
    middle = crop[height // 5 :, width // 6 : max(width // 6 + 1, width - width // 6)]
    if middle.size == 0:
        return 0.0
    hsv = cv2.cvtColor(np.ascontiguousarray(middle), cv2.COLOR_RGB2HSV)
    hue, saturation, value = (hsv[..., channel].astype(int) for channel in range(3))
    vivid = (saturation > 80) & (value > 60)
    ranges = {
        "orange": (8, 20),
        "yellow": (21, 34),
        "green": (35, 85),
        "blue": (86, 130),
        "purple": (131, 155),
        "pink": (156, 172),
    }
    if colour_word == "black":
        found = value < 60
    elif colour_word == "white":
        found = (value > 190) & (saturation < 45)
    elif colour_word == "grey":
        found = (saturation < 40) & (value >= 60) & (value <= 190)
    elif colour_word == "brown":
        found = (hue >= 5) & (hue <= 20) & (saturation > 60) & (value > 30) & (value <= 150)
    elif colour_word == "red":
        found = vivid & ((hue <= 8) | (hue >= 172))
    else:
        low, high = ranges[colour_word]
        found = vivid & (hue >= low) & (hue <= high)
    return float(found.mean())
