"""Levelling: what a reader calls the same is the same, and nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.questions.checks.source import locate, spelled_as_in
from engine.questions.text import fold, has_phrase, level, places, sentences, spellings, words

ANY = st.text(max_size=200)


@given(ANY)
def test_levelling_twice_is_once(text: str) -> None:
    assert level(level(text)) == level(text)
    assert "\u00a0" not in level(text)
    assert "  " not in level(text)


@given(ANY)
def test_folding_forgets_case(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    if text.isascii():
        assert fold(text.upper()) == fold(text.lower()) == fold(text)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("“Gül’s” prize", '"GUL\'S" PRIZE'),
        ("A–B—C‑D", "a-b-c-d"),
        ("Cafe\u0301 Søren", "café soren"),
        ("ﬁne\u00a0print", "fine print"),
        ("soft\u00adhyphen", "softhyphen"),
        ("Straße", "strasse"),
        ("ＬＵＭＯ Ｘ２", "lumo x2"),
    ],
)
def test_the_same_to_a_reader(first: str, second: str) -> None:
    assert fold(first) == fold(second)


@pytest.mark.parametrize(
    ("first", "second"), [("Holm", "Holt"), ("Ann Li", "Anna Li"), ("X2", "X 2"), ("1,000", "1.000")]
)
def test_not_the_same(first: str, second: str) -> None:
    assert fold(first) != fold(second)


def test_umlauts_have_two_spellings() -> None:
    assert sorted(spellings("Müller")) == ["mueller", "muller"]
    assert sorted(spellings("Søren")) == ["soeren", "soren"]


@given(
    st.lists(st.sampled_from(["holm", "holmes", "anna", "x2", "-", "'s", " ", ","]), max_size=12),
    st.sampled_from(["holm", "x2"]),
)
def test_phrases_are_whole_words(parts: list[str], phrase: str) -> None:
    text = "".join(parts)
    for start, end in places(text, phrase):
        assert text[start:end] == phrase
        assert not text[:start][-1:].isalnum()
        assert not text[end:][:1].isalnum()
    assert has_phrase(text, phrase) == any(True for _ in places(text, phrase))


def test_a_possessive_may_follow_a_name() -> None:
    assert has_phrase("Holm’s statue", "Holm")
    assert not has_phrase("Holmes saw it", "Holm")
    assert words("The mayor’s ship-yard") == ["the", "mayor", "ship-yard"]


@given(ANY)
def test_sentences_lose_no_letter(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Holm met J. K. Abernathy at 3 p.m. on Tuesday. It rained.", 2),
        ("It cost 3.50 crowns. Nobody paid.", 2),
        ('"Is it you?" she asked. "No."', 2),
        ("The U.S. envoy came.\nHe left!", 2),
        ("", 0),
    ],
)
def test_sentence_ends(text: str, count: int) -> None:
    assert len(sentences(text)) == count


@given(
    st.lists(
        st.sampled_from(["the", "a", "storm", "Holm’s", "“big”", "ship–yard,", "sank.", "quickly"]),
        min_size=5,
        max_size=30,
    ),
    st.data(),
)
def test_a_quotation_is_found_whatever_its_marks_and_found_verbatim(parts: list[str], data: st.DataObject) -> None:
    text = " ".join(parts)
    start = data.draw(st.integers(0, len(parts) - 4))
    stop = data.draw(st.integers(start + 4, len(parts)))
    quoted = " ".join(parts[start:stop])
    plain = quoted.replace("’", "'").replace("“", '"').replace("”", '"').replace("–", "-").replace(" ", "  ")
    found = locate(plain, "", text)
    assert found is not None
    assert found[0] == "text"
    assert found[1] in text
    assert fold(found[1]).strip("\"'.,") == fold(quoted).strip("\"'.,")


def test_a_changed_word_is_no_quotation() -> None:
    assert locate("the storm sank the ship", "", "The storm sunk the ship.") is None


def test_answers_are_spelled_as_the_article_does() -> None:
    assert spelled_as_in("ILSE BRANDVIK", "", "Then Ilse Brandvik's speech began.") == "Ilse Brandvik"
    assert spelled_as_in("Nobody Else", "", "Then Ilse Brandvik spoke.") == "Nobody Else"


def test_no_heavy_import() -> None:
    """The config, the key and the template writer are reached without the SDK or anything else that takes a second."""
    code = (
        "import sys, engine.questions.ask, engine.questions.deps, engine.questions.writers.template, "
        "engine.questions.writers.llm, engine.llm.client, engine.llm.batch\n"
        "heavy = {'openai', 'httpx2', 'torch', 'datasets', 'prefect', 'cv2', 'spacy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
