"""Reading answers without a model: whose name stands where the question asks, and what is no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.rose.answer import extract
from inference.rose.names import complete, find_names, looks_like_person
from inference.rose.text import Chunk, coverage, rank_chunks, rarity, split_chunks, split_sentences, stems

PAGE = (
    "Mara Quist and Otto Lind met in Stoneport on Sunday. Quist won the harbour regatta in strong wind. She also "
    "opened the tidal gate. The bakery was opened by Otto Lind. In Brickfield the Vireo 12E replaced the last diesel "
    "buses. "
    "Dr. J. Ellery Vance, of the Harbour Institute, spoke about tides. The iPhone 16 Pro goes on sale in June."
)


def answers(question: str, *pages: str) -> list[str]:
    chunks = [chunk for n, page in enumerate(pages) for chunk in split_chunks(page, words=150, url=f"u{n}")]
    return [candidate.name for candidate in extract(question, chunks)]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which person in the image won the harbour regatta?", "Mara Quist"),
        ("Which person in the image opened the tidal gate?", "Mara Quist"),
        ("Which person in the image opened the bakery?", "Otto Lind"),
        ("Which bus in the image replaced the last diesel buses?", "Vireo 12E"),
        ("Who spoke about tides?", "J. Ellery Vance"),
        ("Which smartphone in the picture goes on sale in June?", "iPhone 16 Pro"),
    ],
)
def test_the_name_in_the_question_s_place(question: str, answer: str) -> None:
    assert answers(question, PAGE)[0] == answer


def test_a_name_of_the_question_is_no_answer() -> None:
    page = "Mara Quist beat Otto Lind in the final of the open."
    assert answers("Which person beat Otto Lind in the final of the open?", page) == ["Mara Quist"]


def test_nothing_is_answered_from_pages_about_something_else() -> None:
    assert answers("Which person in the image signed the treaty of the four islands?", PAGE) == []
    assert answers("Which person?", "") == []


def test_a_second_page_counts_for_the_answer() -> None:
    one = "Otto Lind won the race of the year in Stoneport."
    two = "It was Mara Quist, the papers say; Mara Quist won the race of the year in Stoneport."
    three = "Mara Quist won the race of the year in Stoneport."
    assert answers("Which person won the race of the year in Stoneport?", one, two, three)[0] == "Mara Quist"


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("The Lumio Nova 7 and the Corvid Book 14 were shown.", ["Lumio Nova 7", "Corvid Book 14"]),
        ("Rear Admiral Grace Hopper met President Ana de la Cruz.", ["Grace Hopper", "Ana de la Cruz"]),
        ("On Monday, Ursula von der Heide's plan failed.", ["Ursula von der Heide"]),
        ("nothing is named here at all", []),
    ],
)
def test_names_by_their_shape(sentence: str, names: list[str]) -> None:
    assert [name.text for name in find_names(sentence)] == names


def test_persons_and_short_names() -> None:
    assert looks_like_person("Ursula von der Heide")
    assert looks_like_person("J. O'Neill-Smith")
    assert not looks_like_person("Vireo 12E")
    assert not looks_like_person("Harbour Institute")
    assert complete("Quist", ["Mara Quist", "Otto Lind"]) == "Mara Quist"
    assert complete("Lindgren", ["Otto Lind"]) == "Lindgren"


def test_sentences_keep_titles_and_initials_together() -> None:
    text = "Dr. J. Vance spoke. He said: it rises 3.5 m in Jan. this year.\nA new line. U.S. ships came."
    assert split_sentences(text) == [
        "Dr. J. Vance spoke.",
        "He said: it rises 3.5 m in Jan. this year.",
        "A new line.",
        "U.S. ships came.",
    ]


@given(st.lists(st.text(alphabet="abcXYZ .!?\n", max_size=40), max_size=6), st.integers(5, 40))
def test_chunks_lose_no_sentence(texts: list[str], words: int) -> None:
    text = "\n".join(texts)
    chunks = split_chunks(text, words=words)
    kept = [sentence for chunk in chunks for sentence in chunk.sentences]
    assert set(kept) == set(split_sentences(text))
    for chunk in chunks:
        assert len(chunk.text.split()) <= words or len(chunk.sentences) <= 2


@given(st.lists(st.sampled_from(["opened", "bridge", "gate", "won", "race", "Quist"]), max_size=8))
def test_coverage_is_a_share(words: list[str]) -> None:
    wanted = stems("opened the bridge")
    weight = rarity([words, wanted])
    assert 0.0 <= coverage(wanted, words, weight) <= 1.0
    assert coverage(wanted, wanted, weight) == 1.0


def test_chunks_are_ranked_and_ties_are_settled() -> None:
    told = [
        chunk
        for url, text in (("b", "The bridge was opened."), ("a", "The bridge was opened."), ("c", "Nothing else."))
        for chunk in split_chunks(text, words=9, url=url)
    ]
    ranked = rank_chunks("Which person opened the bridge?", told, limit=3)
    assert [chunk.url for chunk in ranked] == ["a", "b"]
    assert ranked[0].score == ranked[1].score > 0


def test_several_pages_about_something_like_it_do_not_overtake_the_one_that_says_it() -> None:
    question = "Which smartphone in the image won the first harbour prize in May?"
    close = "Lumio Nova 4 won the second harbour prize in May."
    chunks = [
        Chunk("https://a.example/1", "News", ("Lumio Nova 5 won the first harbour prize in May.",)),
        *(Chunk(f"https://b.example/{n}", "News", (close,)) for n in range(6)),
    ]
    found = extract(question, chunks)
    assert [candidate.name for candidate in found] == ["Lumio Nova 5", "Lumio Nova 4"]
    alone = next(c for c in extract(question, chunks[:2]) if c.name == "Lumio Nova 4")
    # more pages make it surer, and never as sure
    assert alone.score < found[1].score < found[0].score
