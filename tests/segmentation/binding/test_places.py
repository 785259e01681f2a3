from __future__ import annotations

import pytest

from segmentation.binding.places import Place, read_colour, read_place


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("left", Place("from_left")),
        ("far left", Place("from_left")),
        ("on the right", Place("from_right")),
        ("second from left", Place("from_left", 2)),
        ("2nd from right", Place("from_right", 2)),
        ("third from the left", Place("from_left", 3)),
        ("first from left", Place("from_left", 1)),
        ("centre", Place("centre")),
        ("in the middle", Place("centre")),
        ("foreground", Place("front")),
        ("in the background", Place("back")),
        ("top", Place("top")),
        ("front row, second from left", Place("from_left", 2)),
        ("links", Place("from_left")),
        ("Zweiter von rechts", Place("from_right", 2)),
        ("à gauche", Place("from_left")),
        ("segunda por la derecha", Place("from_right", 2)),
        ("al centro", Place("centre")),
    ],
)
def test_reads_place_words(words: str, place: Place) -> None:
    assert read_place(words) == place


@pytest.mark.parametrize("words", ["", "holding the trophy", "centre left", "left or right", "with his brother"])
def test_words_that_say_no_single_place_are_silent(words: str) -> None:
    assert read_place(words) is None


@pytest.mark.parametrize(
    ("words", "colour"),
    [
        ("in red", "red"),
        ("wearing a dark blue", "blue"),
        ("in the gray suit", "grey"),
        ("left", None),
        ("redhead", None),
    ],
)
def test_reads_colours_that_are_worn(words: str, colour: str | None) -> None:
    assert read_colour(words) == colour
