"""Published texts hold nothing that cannot be seen, whatever a model wrote."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from support import snapshots

from engine.core.store import BlobStore
from engine.snapshot.plain_text import odd_character, plain
from engine.snapshot.rows import Row, make_row


@given(st.text())
def test_a_plain_text_has_no_odd_character_and_stays_as_it_is(text: str) -> None:
    made = plain(text)
    assert odd_character(made) == ""
    assert plain(made) == made
    if not odd_character(text):
        assert made == text


def test_line_breaks_and_overrides_in_a_models_question() -> None:
    assert plain("Which person\r\n\tis\x00 this?\u202e") == "Which person is this?"


def test_a_row_is_published_with_plain_texts(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    (sample,) = snapshots.samples(1, blobs)
    question = sample.question.model_copy(update={"question": "Who is\nthis?", "answer": "Ada\u2028Byron"})
    row = make_row(sample.model_copy(update={"question": question}), blobs=blobs, config=snapshots.CONFIG)
    assert isinstance(row, Row)
    assert (row.default["question"], row.default["answer"]) == ("Who is this?", "Ada Byron")
