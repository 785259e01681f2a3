"""What a question asks for, and what is left of it as a statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.segmenters.phrases import asks_for_person, is_question, noun_of, phrase_of, predicate_of
from inference.segmenters.portable import portable_phrases


@pytest.mark.parametrize(
    ("question", "noun", "predicate"),
    [
        ("Which person in the image commanded STS-93?", "person", "commanded STS-93"),
        ("Which robot vacuum in the picture finished second?", "robot vacuum", "finished second"),
        ("Which smartphone shown here goes on sale in May?", "smartphone", "goes on sale in May"),
        ("Which game console in the image sold 400,000 units?", "game console", "sold 400,000 units"),
        ("Who opened the gate?", "person", "Who opened the gate"),
        ("What is used to cut bread?", "object", "is used to cut bread"),
        ("Which smartphone in the image won the first harbour prize?", "smartphone", "won the first harbour prize"),
        ("Which electric van led the parade?", "electric van", "led the parade"),
        ("Which laptop runs for nineteen hours?", "laptop", "runs for nineteen hours"),
    ],
)
def test_noun_and_predicate(question: str, noun: str, predicate: str) -> None:
    assert noun_of(question) == noun
    assert predicate_of(question) == predicate


def test_phrases_stay_what_they_are() -> None:
    assert phrase_of("the red bus on the left") == "red bus on the left"
    assert phrase_of("Which bus in the image is red?") == "bus"
    assert not is_question("red bus")
    assert is_question("Please segment the bus.")


@pytest.mark.parametrize(
    ("prompt", "phrases"),
    [
        ("Which astronaut in the image flew first?", ("person",)),
        ("person", ("person",)),
        ("Which watch in the image is new?", ("watch",)),
        ("Which speaker in the image is loudest?", ("person", "speaker product")),
    ],
)
def test_portable_phrases(prompt: str, phrases: tuple[str, ...]) -> None:
    assert portable_phrases(prompt) == phrases


def test_people_are_told_from_things() -> None:
    assert asks_for_person("Which senator in the image left early?")
    assert asks_for_person("Who left early?")
    assert asks_for_person("woman in the red coat")
    assert not asks_for_person("Which electric bus in the image was built last?")


@given(st.text(max_size=120))
def test_any_text_has_a_phrase(text: str) -> None:
    assert phrase_of(text)
    assert noun_of(text)
    assert portable_phrases(text)
