from __future__ import annotations

import numpy as np
import pytest
from support.annotating import entity

from engine.core.geometry import Box
from engine.core.protocols import Detection
from segmentation.binding import Bound, Named, Scene, bind, candidates_of, evidence

BOXES = [Box(10, 10, 60, 110), Box(110, 20, 160, 110), Box(210, 40, 250, 110)]
RGB = {
    "red": (200, 30, 30),
    "orange": (230, 130, 20),
    "yellow": (230, 220, 40),
    "green": (40, 150, 50),
    "blue": (40, 60, 200),
    "purple": (140, 40, 180),
    "pink": (240, 90, 180),
    "black": (15, 15, 15),
    "white": (245, 245, 245),
    "grey": (128, 128, 128),
    "brown": (120, 70, 30),
}


def scene(names: list[Named], colours: list[str] | None = None) -> Scene:
    pixels = np.full((120, 300, 3), (90, 140, 170), np.uint8)
    for box, colour in zip(BOXES, colours or [], strict=False):
        pixels[int(box.y1) : int(box.y2), int(box.x1) : int(box.x2)] = RGB[colour]
    found = candidates_of([Detection(box, 0.9, "person") for box in BOXES], same_iou=0.6)
    return Scene(pixels, tuple(names), found)


@pytest.mark.parametrize("colour", sorted(RGB))
def test_the_colour_somebody_wears(colour: str) -> None:
    other = "blue" if colour != "blue" else "red"
    name = Named(entity("Ada", position=f"in {colour}"))
    opinion = evidence.colour(scene([name], [other, colour, other]), name)
    assert opinion is not None
    assert opinion.choice == 1
    assert opinion.lead > 0.9


def test_a_colour_that_nobody_or_everybody_wears_leads_nowhere() -> None:
    name = Named(entity("Ada", position="in red"))
    for colours in (["blue"] * 3, ["red"] * 3):
        opinion = evidence.colour(scene([name], colours), name)
        assert opinion is not None
        assert opinion.lead < 0.05
    plain = Named(entity("Ada", position="left"))
    assert evidence.colour(scene([plain]), plain) is None


def test_colour_and_place_bind_among_strangers() -> None:
    name = Named(entity("Ada", position="right, in red"))
    (decision,) = bind(scene([name], ["blue", "green", "red"]), min_margin=0.1)
    assert isinstance(decision, Bound)
    assert (decision.binding.candidate, decision.binding.rule) == (2, "colour+position")


@pytest.mark.parametrize(
    ("words", "chosen"),
    [("left", 0), ("second from right", 1), ("centre", 1), ("far right", 2), ("front", 0), ("back", 2), ("top", 0)],
)
def test_place_words_pick_boxes(words: str, chosen: int) -> None:
    name = Named(entity("Ada", position=words))
    opinion = evidence.position(scene([name]), name)
    assert opinion is not None
    assert opinion.choice == chosen
    assert 0 < opinion.lead <= 1


def test_a_rank_beyond_the_row_says_nothing() -> None:
    name = Named(entity("Ada", position="fifth from left"))
    assert evidence.position(scene([name]), name) is None


def test_boxes_that_are_small_beside_the_largest_are_background() -> None:
    name = Named(entity("Ada"))
    boxes = [Box(10, 10, 110, 110), Box(200, 90, 215, 105)]
    found = candidates_of([Detection(box, 0.9, "person") for box in boxes], same_iou=0.6)
    where = Scene(np.zeros((120, 300, 3), np.uint8), (name,), found)
    assert where.eligible(name) == (0,)
    assert evidence.sole(where, name) is not None
