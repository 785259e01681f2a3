from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from segmentation.detectors.groundingdino_text import (
    TOKEN_LIMIT,
    assign_phrases,
    build_captions,
    clean_phrase,
    phrase_tokens,
)

CASE = Path(__file__).parents[2] / "data/cases/34-dino-caption"


def words(text: str) -> int:
    """A stand-in tokenizer: one token per word."""
    return len(text.split())


def test_case_34_caption_and_spans() -> None:
    expected = json.loads((CASE / "expected.json").read_text())
    entities = json.loads((CASE / "entities.json").read_text())
    captions, dropped = build_captions(entities, count_tokens=words)
    assert [c.text for c in captions] == [expected["caption"]]
    found = {p: list(s) for p, s in zip(captions[0].phrases, captions[0].spans, strict=True)}
    assert found == expected["spans"]
    assert dropped == expected["dropped"]


def test_case_34_long_lists_become_several_captions() -> None:
    names = json.loads((CASE / "many.json").read_text())
    captions, dropped = build_captions(names, count_tokens=words)
    assert [len(c.phrases) for c in captions] == json.loads((CASE / "expected.json").read_text())["many_chunks"]
    assert [p for c in captions for p in c.phrases] == names
    assert dropped == []


@given(st.lists(st.text(max_size=40), max_size=60), st.integers(8, 40))
def test_no_phrase_is_lost_split_or_merged(phrases: list[str], limit: int) -> None:
    captions, dropped = build_captions(phrases, count_tokens=words, limit=limit)
    kept = [p for c in captions for p in c.phrases]
    assert set(kept) | set(dropped) | {p for p in phrases if clean_phrase(p) in map(clean_phrase, kept)} == set(phrases)
    assert not set(map(clean_phrase, kept)) & set(map(clean_phrase, dropped))
    assert len(set(map(clean_phrase, kept))) == len(kept)
    for caption in captions:
        assert caption.text.endswith(" .")
        assert words(caption.text) + 2 <= limit
        assert caption.text.count(".") == len(caption.phrases)
        for phrase, (start, end) in zip(caption.phrases, caption.spans, strict=True):
            assert caption.text[start:end] == clean_phrase(phrase)


def test_a_phrase_longer_than_a_caption_is_dropped_not_cut() -> None:
    long = "word " * TOKEN_LIMIT
    captions, dropped = build_captions([long, "tug"], count_tokens=words)
    assert dropped == [long]
    assert captions[0].phrases == ("tug",)
    assert build_captions([], count_tokens=words) == ([], [])


def test_a_question_mark_is_a_separator_too() -> None:
    assert clean_phrase("Who? Me\u200b!") == "who me !"
    assert clean_phrase("...?/") == ""


def test_tokens_belong_to_a_phrase_by_place_not_by_likeness() -> None:
    captions, _ = build_captions(["van", "caravan", "a van"], count_tokens=words)
    #            [CLS]   van     .       cara     ##van     .         a         van        .        [SEP]
    offsets = [(0, 0), (0, 3), (4, 5), (6, 10), (10, 13), (14, 15), (16, 17), (18, 21), (22, 23), (0, 0)]
    assert captions[0].text == "van . caravan . a van ."
    tokens = phrase_tokens(captions[0], offsets)
    assert tokens == [(1,), (3, 4), (6, 7)]
    probabilities = np.zeros((4, 10), np.float32)
    probabilities[0, 4] = 0.9  # "##van" means the caravan, not the van
    probabilities[1, [1, 7]] = 0.6  # a tie goes to the earlier phrase
    probabilities[2, 2] = 0.8  # only a separator: no phrase
    probabilities[3, 6] = 0.2  # too weak a token
    labels, scores = assign_phrases(probabilities, tokens, text_threshold=0.25)
    assert labels == [1, 0, None, None]
    assert scores == pytest.approx([0.9, 0.6, 0.8, 0.2])
    assert assign_phrases(np.zeros((0, 4), np.float32), [], text_threshold=0.1)[0] == []
