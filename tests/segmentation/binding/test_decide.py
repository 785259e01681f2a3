from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.annotating import entity

from engine.core.geometry import Box
from engine.core.protocols import Detection
from engine.core.schema import Code
from segmentation.binding import Bound, Named, Scene, Unbound, bind, candidates_of
from segmentation.binding.evidence import Opinion

PIXELS = np.zeros((100, 300, 3), np.uint8)


def at(*xs: float, width: float = 40) -> list[Box]:
    return [Box(x, 20, x + width, 90) for x in xs]


def scene(names: list[Named], boxes: list[Box], phrase: str = "person") -> Scene:
    found = candidates_of([Detection(box, 0.9, phrase) for box in boxes], same_iou=0.6)
    return Scene(PIXELS, tuple(names), found)


def people(*told: tuple[str, str]) -> list[Named]:
    return [Named(entity(name, position=position, order=index)) for index, (name, position) in enumerate(told)]


def witness(kind: str, choices: dict[str, tuple[int, float]]):  # type: ignore[no-untyped-def]
    """Evidence that names a box and a lead for some names."""

    def ask(where: Scene, name: Named) -> Opinion | None:
        if name.entity.name not in choices:
            return None
        index, lead = choices[name.entity.name]
        return Opinion(kind, {other: 1.0 if other == index else 1.0 - lead for other in where.eligible(name)}, lead)

    return ask


def test_one_name_and_one_box_is_certain() -> None:
    (decision,) = bind(scene(people(("Ada", "")), at(50)), min_margin=0.1)
    assert isinstance(decision, Bound)
    assert (decision.binding.rule, decision.binding.candidate, decision.binding.margin) == ("sole", 0, 0.9)


def test_place_words_bind_when_there_are_as_many_boxes_as_names() -> None:
    names = people(("Ada", "right"), ("Bob", "left"), ("Cy", "centre"))
    decisions = bind(scene(names, at(10, 110, 210)), min_margin=0.1)
    assert [item.binding.candidate for item in decisions if isinstance(item, Bound)] == [2, 0, 1]
    assert {item.binding.rule for item in decisions if isinstance(item, Bound)} == {"count+position"}


def test_place_words_alone_do_not_bind_among_strangers() -> None:
    decisions = bind(scene(people(("Ada", "left"), ("Bob", "right")), at(10, 110, 210)), min_margin=0.1)
    assert [item.code for item in decisions if isinstance(item, Unbound)] == [Code.UNBOUND, Code.UNBOUND]


def test_a_second_kind_binds_among_strangers() -> None:
    names = people(("Ada", "left"), ("Bob", "right"))
    said = witness("reference", {"Ada": (0, 0.4), "Bob": (2, 0.6)})
    decisions = bind(scene(names, at(10, 110, 210)), witnesses=[said], min_margin=0.1)
    assert [(item.binding.candidate, item.binding.rule) for item in decisions if isinstance(item, Bound)] == [
        (0, "position+reference"),
        (2, "position+reference"),
    ]


def test_kinds_that_disagree_reject() -> None:
    names = people(("Ada", "left"), ("Bob", "right"))
    said = witness("reference", {"Ada": (1, 0.4)})
    decisions = bind(scene(names, at(10, 210)), witnesses=[said], min_margin=0.1)
    assert isinstance(decisions[0], Unbound)
    assert decisions[0].code is Code.BINDING_DISAGREES
    assert "position says box 0" in decisions[0].detail


def test_a_single_box_is_not_taken_against_other_evidence() -> None:
    """A caption that speaks of somebody else than the one who was found."""
    names = [*people(("Ada", "")), Named(entity("Lens", phrase="camera", order=1))]
    boxes = [Detection(Box(10, 20, 50, 90), 0.9, "person"), Detection(Box(10, 20, 50, 90), 0.5, "camera")]
    where = Scene(PIXELS, tuple(names), candidates_of(boxes, same_iou=0.6))
    decisions = bind(where, min_margin=0.1)
    assert [item.code for item in decisions if isinstance(item, Unbound)] == [Code.BINDING_TIE, Code.BINDING_TIE]


def test_habitual_order_alone_is_no_evidence() -> None:
    decisions = bind(scene(people(("Ada", ""), ("Bob", "")), at(10, 210)), min_margin=0.1)
    assert [item.code for item in decisions if isinstance(item, Unbound)] == [Code.UNBOUND, Code.UNBOUND]


def test_habitual_order_against_a_reference_halves_the_margin() -> None:
    names = people(("Ada", ""), ("Bob", ""))
    with_order = bind(scene(names, at(10, 210)), witnesses=[witness("reference", {"Ada": (0, 0.4)})], min_margin=0.0)
    against = bind(scene(names, at(10, 210)), witnesses=[witness("reference", {"Ada": (1, 0.4)})], min_margin=0.0)
    assert isinstance(with_order[0], Bound)
    assert isinstance(against[0], Bound)
    assert with_order[0].binding.margin == pytest.approx(0.4)
    assert against[0].binding.margin == pytest.approx(0.2)


def test_a_small_lead_is_a_tie() -> None:
    names = people(("Ada", "left"), ("Bob", "right"))
    decisions = bind(scene(names, at(100, 101, width=90)[:1] + at(104, width=90)), min_margin=0.5)
    assert {item.code for item in decisions if isinstance(item, Unbound)} <= {Code.BINDING_TIE, Code.UNBOUND}
    assert not [item for item in decisions if isinstance(item, Bound)]


def test_nobody_found() -> None:
    (decision,) = bind(scene(people(("Ada", "left")), []), min_margin=0.1)
    assert isinstance(decision, Unbound)
    assert decision.code is Code.NO_CANDIDATE


def test_place_words_are_silent_when_somebody_was_not_found() -> None:
    """Three names, two boxes: the leftmost box need not be who stands left."""
    names = people(("Ada", "left"), ("Bob", "centre"), ("Cy", "right"))
    decisions = bind(scene(names, at(10, 110)), min_margin=0.1)
    assert not [item for item in decisions if isinstance(item, Bound)]


def test_a_row_with_a_stranger_in_it_is_found_out() -> None:
    """Ada was not found, a stranger was: there are as many boxes as names, and every place is off by one. One name
    that a reference puts elsewhere is enough to doubt the places of all."""
    names = people(("Ada", "left"), ("Bob", "centre"), ("Cy", "right"))
    said = witness("reference", {"Bob": (0, 0.4)})
    decisions = bind(scene(names, at(10, 110, 210)), witnesses=[said], min_margin=0.1)
    assert [item.code for item in decisions if isinstance(item, Unbound)] == [
        Code.UNBOUND,
        Code.BINDING_DISAGREES,
        Code.UNBOUND,
    ]
    assert "do not fit another name" in decisions[2].detail  # type: ignore[union-attr]


def test_as_many_boxes_as_names_is_counted_per_phrase() -> None:
    """Two cameras and nobody found for one camera and Ada: two boxes for two names, but not each other's."""
    names = [Named(entity("Merle", phrase="camera", position="left")), Named(entity("Ada", position="right", order=1))]
    boxes = [Detection(box, 0.9, "camera") for box in at(10, 200)]
    where = Scene(PIXELS, tuple(names), candidates_of(boxes, same_iou=0.6))
    decisions = bind(where, witnesses=[witness("match", {"Merle": (0, 0.9)})], min_margin=0.1)
    assert [item.code for item in decisions if isinstance(item, Unbound)] == [Code.UNBOUND, Code.NO_CANDIDATE]


def test_references_that_do_not_confirm_a_place_halve_the_margin() -> None:
    shown = (np.zeros((4, 4, 3), np.uint8),)
    plain = people(("Ada", "left"), ("Bob", "right"))
    told = [Named(item.entity, shown) for item in plain]
    (first, _), (second, _) = (bind(scene(names, at(10, 210)), min_margin=0.0) for names in (plain, told))
    assert isinstance(first, Bound)
    assert isinstance(second, Bound)
    assert (first.binding.margin, second.binding.margin) == (1.0, 0.5)


def test_places_count_across_phrases() -> None:
    """A camera left, a person right: each is alone of its kind, and the place words agree."""
    names = [Named(entity("Merle", phrase="camera", position="left")), Named(entity("Ada", position="right", order=1))]
    boxes = [Detection(Box(10, 20, 50, 90), 0.9, "camera"), Detection(Box(200, 20, 260, 90), 0.9, "person")]
    where = Scene(PIXELS, tuple(names), candidates_of(boxes, same_iou=0.6))
    decisions = bind(where, min_margin=0.1)
    assert [item.binding.candidate for item in decisions if isinstance(item, Bound)] == [0, 1]


def test_place_words_against_a_single_box_reject() -> None:
    names = [Named(entity("Merle", phrase="camera", position="right")), Named(entity("Ada", position="left", order=1))]
    boxes = [Detection(Box(10, 20, 50, 90), 0.9, "camera"), Detection(Box(200, 20, 260, 90), 0.9, "person")]
    where = Scene(PIXELS, tuple(names), candidates_of(boxes, same_iou=0.6))
    decisions = bind(where, min_margin=0.1)
    assert {item.code for item in decisions if isinstance(item, Unbound)} == {Code.BINDING_DISAGREES}


@given(
    xs=st.lists(st.integers(0, 25), min_size=1, max_size=5, unique=True),
    places=st.permutations(["left", "right", "centre", "", "second from left"]),
    picks=st.lists(st.tuples(st.integers(0, 4), st.floats(0, 1)), min_size=5, max_size=5),
    count=st.integers(1, 5),
    margin=st.floats(0, 0.5),
)
def test_laws(xs: list[int], places: list[str], picks: list[tuple[int, float]], count: int, margin: float) -> None:
    """Whatever is said: one box is never two names, bound margins reach the threshold, a mirrored scene with mirrored
    words binds the same boxes, and at least two kinds or a certain one stand behind each binding."""
    names = people(*((f"N{index}", places[index]) for index in range(count)))
    boxes = at(*(x * 50.0 for x in sorted(xs)))
    said = {f"N{index}": (min(pick, len(boxes) - 1), lead) for index, (pick, lead) in enumerate(picks)}
    decisions = bind(scene(names, boxes), witnesses=[witness("reference", said)], min_margin=margin)
    bound = [item.binding for item in decisions if isinstance(item, Bound)]
    assert len({binding.candidate for binding in bound}) == len(bound)
    assert all(binding.margin >= margin - 1e-3 for binding in bound)
    assert all(binding.rule == "sole" or "+" in binding.rule for binding in bound)
    again = bind(scene(names, boxes), witnesses=[witness("reference", said)], min_margin=margin)
    assert again == decisions


def test_candidates_of_different_phrases_on_one_body_are_one() -> None:
    boxes = [
        Detection(Box(0, 0, 50, 100), 0.6, "man"),
        Detection(Box(1, 0, 51, 100), 0.9, "person"),
        Detection(Box(100, 0, 150, 100), 0.7, "person"),
    ]
    found = candidates_of(boxes, same_iou=0.6)
    assert [dict(item.phrases) for item in found] == [{"man": 0.6, "person": 0.9}, {"person": 0.7}]
    assert all(first.box.x1 <= second.box.x1 for first, second in itertools.pairwise(found))
