"""Who is in the picture and where, by the forms that news captions take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.questions.captions import read_caption
from engine.questions.names import full_name, product_phrase, without_credit

TEXT = "Prime Minister Anna Brandvik spoke. The Orbit 5, a light folding phone, is here. Ana Ruiz met Leo Ruiz."
CASES: list[tuple[str, list[tuple[str, str, str]]]] = [
    (
        "Eileen Collins, left, and Grace Hopper at the Northvale Science Museum on Tuesday.",
        [("Eileen Collins", "person", "left"), ("Grace Hopper", "person", "")],
    ),
    (
        "From left: Eileen Collins, Grace Hopper and Tomas Okafor at Cape Canaveral.",
        [
            ("Eileen Collins", "person", "left"),
            ("Grace Hopper", "person", "second from left"),
            ("Tomas Okafor", "person", "right"),
        ],
    ),
    (
        "From left to right, Ana de la Cruz, Jean-Luc Picard and Mary O'Neil.",
        [
            ("Ana de la Cruz", "person", "left"),
            ("Jean-Luc Picard", "person", "second from left"),
            ("Mary O'Neil", "person", "right"),
        ],
    ),
    (
        "(L-R) Eileen Collins and Grace Hopper",
        [("Eileen Collins", "person", "left"), ("Grace Hopper", "person", "right")],
    ),
    ("The Lumo X2 phone beside a cup", [("Lumo X2", "smartphone", "")]),
    (
        "Mayor Ilse Brandvik (right) cuts the ribbon with Tomas Okafor (L) in Northvale.",
        [("Ilse Brandvik", "person", "right"), ("Tomas Okafor", "person", "left")],
    ),
    (
        "On the left, Grace Hopper; on the right, Eileen Collins",
        [("Grace Hopper", "person", "left"), ("Eileen Collins", "person", "right")],
    ),
    (
        "Left, Eileen Collins; right, the Kestrel laptop.",
        [("Eileen Collins", "person", "left"), ("Kestrel", "laptop", "right")],
    ),
    ("Rear Admiral Grace Hopper, second from right, in the hall.", [("Grace Hopper", "person", "second from right")]),
    ("Grace Hopper, the computer scientist, left, at work", [("Grace Hopper", "person", "left")]),
    (
        "Eileen Collins, in a blue suit, with the Corva S1 camera",
        [("Eileen Collins", "person", "in a blue suit"), ("Corva S1", "camera", "")],
    ),
    (
        "Visitors look at the Orbit 5 (left) and the Vento watch (right).",
        [("Orbit 5", "smartphone", "left"), ("Vento", "watch", "right")],
    ),
    (
        "The Tidewater electric bus and, at right, the Halo Mini speaker",
        [("Tidewater", "bus", ""), ("Halo Mini", "speaker", "right")],
    ),
    ("President Brandvik speaks in Oslo.", [("Anna Brandvik", "person", "")]),
    ("Grace Hopper’s Kestrel laptop", [("Kestrel", "laptop", "")]),
    ("Apple CEO Tim Cook at Apple Park, September 9, 2024. REUTERS/Jane Doe", [("Tim Cook", "person", "")]),
    (
        "French President Emmanuel Macron, left, with German Chancellor Olaf Scholz in Paris. (AP Photo/Jane Doe)",
        [("Emmanuel Macron", "person", "left"), ("Olaf Scholz", "person", "")],
    ),
    ("Pope Francis waves from the balcony of St. Peter's Basilica.", [("Pope Francis", "person", "")]),
    ("Vireo's Orbit 5 phone, left", [("Orbit 5", "smartphone", "left")]),
    # nobody to ask for
    ("A crowd at Northvale Harbour", []),
    ("Cape Canaveral, Florida", []),
    ("Photo by John Smith", []),
    ("The office of Anna Brandvik", []),
    ("Northvale University and the Skarv Line company", []),
    ("President Ruiz speaks.", []),
    ("", []),
]


@pytest.mark.parametrize(("caption", "expected"), CASES, ids=[caption[:40] for caption, _ in CASES])
def test_caption(caption: str, expected: list[tuple[str, str, str]]) -> None:
    found = read_caption(caption, text=TEXT)
    assert [(item.name, item.phrase, item.position) for item in found] == expected
    assert [item.order for item in found] == list(range(len(found)))


def test_the_text_names_what_a_product_is() -> None:
    assert product_phrase("Orbit 5", TEXT) == "smartphone"
    assert product_phrase("Vento", TEXT) == ""


def test_a_surname_of_two_people_is_nobodys() -> None:
    assert full_name("Brandvik", TEXT) == "Anna Brandvik"
    assert full_name("Ruiz", TEXT) == ""


@given(st.text(max_size=200), st.text(max_size=100))
def test_any_text_is_read(caption: str, text: str) -> None:
    """No input breaks it, and no name is found twice."""
    found = read_caption(caption, text=text)
    assert len({item.name for item in found}) == len(found)


@pytest.mark.parametrize(
    ("caption", "bare"),
    [
        ("Grace Hopper at work. Photograph: Jane Doe/The Herald", "Grace Hopper at work."),
        ("Grace Hopper at work (AP Photo/Jane Doe)", "Grace Hopper at work"),
        ("Grace Hopper at work. | AP", "Grace Hopper at work."),
        ("Grace Hopper at work. REUTERS/Jane Doe", "Grace Hopper at work."),
        ("Photo by Jane Doe/Getty Images", ""),
        ("Grace Hopper (left) in a photo by the door", "Grace Hopper (left) in a photo by the door"),
        ("Grace Hopper and the AP desk", "Grace Hopper and the AP desk"),
    ],
)
def test_photographers_are_not_in_their_pictures(caption: str, bare: str) -> None:
    assert without_credit(caption) == bare
