"""The join: ids from content, order without meaning, and what must not be published."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import snapshots

from engine.core.errors import ConfigError, TerminalError
from engine.core.schema import Code, Rejected, Sample
from engine.core.store import BlobStore
from engine.snapshot.optout import OptOut, add_optout, entry, normal_text, normal_url, read_optout, url_domains
from engine.snapshot.samples import join, sample_id
from engine.snapshot.takedown import Wish


@pytest.fixture
def records(tmp_path: Path) -> tuple[list, list, list]:
    return snapshots.records(5, BlobStore(tmp_path / "blobs"))


def kept(found: list) -> list[Sample]:
    return [item for item in found if isinstance(item, Sample)]


def lost(found: list) -> dict[str, Code]:
    return {item.item: item.code for item in found if isinstance(item, Rejected)}


def test_ids_come_from_content(records: tuple[list, list, list]) -> None:
    articles, questions, annotations = records
    found = join(articles, questions, annotations)
    for shuffle in range(3):
        rng = random.Random(shuffle)
        parts = [rng.sample(part, len(part)) for part in records]
        assert join(*parts) == found
    ids = [sample.id for sample in kept(found)]
    assert ids == sorted(set(ids))
    renamed = [article.model_copy(update={"title": "other", "url": article.url + "&x=1"}) for article in articles]
    assert [sample.id for sample in kept(join(renamed, questions, annotations))] == ids
    article, question = articles[0], questions[0]
    base = sample_id(article, question)
    for change in ({"question": "Who?"}, {"answer": "Ada"}, {"images": ("0" * 64,)}):
        assert sample_id(article, question.model_copy(update=change)) != base
    assert sample_id(article.model_copy(update={"canonical_url": "https://x.example/"}), question) != base


def test_records_that_do_not_fit_are_rejected(records: tuple[list, list, list]) -> None:
    articles, questions, annotations = records
    found = join(articles[1:], [questions[0], *questions[2:]], annotations)
    assert lost(found) == {annotations[0].id: Code.INTERNAL, annotations[1].id: Code.INTERNAL}
    other = questions[2].model_copy(update={"images": ("f" * 64,)})
    found = join(articles, [questions[0], questions[1], other, *questions[3:]], annotations)
    assert set(lost(found).values()) == {Code.INTERNAL}
    assert len(kept(found)) == 4


def test_the_same_row_twice_is_one(records: tuple[list, list, list]) -> None:
    articles, questions, annotations = records
    twin_question = questions[0].model_copy(update={"id": "q9"})
    twin = annotations[0].model_copy(update={"id": "m9", "question_id": "q9"})
    found = join(articles, [*questions, twin_question], [twin, *annotations])
    assert len(kept(found)) == 5
    assert lost(found) == {"m9": Code.QUESTION_DUPLICATE}


def test_reviewed_rows_stay_out(records: tuple[list, list, list]) -> None:
    first = kept(join(*records))[0].id
    found = join(*records, wrong={first: "wrong mask"})
    assert lost(found) == {first: Code.REVIEWED_WRONG}
    assert [item.detail for item in found if isinstance(item, Rejected)] == ["wrong mask"]
    assert lost(join(*records, wrong={first})) == {first: Code.REVIEWED_WRONG}


def test_each_kind_of_opt_out(records: tuple[list, list, list]) -> None:
    sample = kept(join(*records))[0]
    image = sample.images[0]
    other = f"{int(image.phash, 16) ^ 0b111:016x}"
    cases = [
        (entry("id", sample.id), Code.TAKEN_DOWN),
        (entry("url", sample.article.canonical_url.replace("https", "http") + "/"), Code.OPTED_OUT),
        (entry("url", image.url), Code.OPTED_OUT),
        (entry("domain", "herald.example"), Code.OPTED_OUT),
        (entry("domain", "pics.herald.example"), Code.OPTED_OUT),
        (entry("entity", sample.question.answer.upper()), Code.OPTED_OUT),
        (entry("image", image.sha256), Code.OPTED_OUT),
        (entry("phash", other), Code.OPTED_OUT),
    ]
    for item, code in cases:
        assert OptOut.of([item]).refuses(sample) is code, item.kind
    assert OptOut.of([], names=[sample.question.answer]).refuses(sample) is Code.OPTED_OUT
    for item in (entry("entity", "Nobody"), entry("domain", "other.example"), entry("url", "https://x.example")):
        assert OptOut.of([item]).refuses(sample) is None


def test_the_list_on_disk(tmp_path: Path) -> None:
    assert read_optout(tmp_path).entries == frozenset()
    add_optout(tmp_path, [entry("entity", "Tomás Okafor"), entry("id", "ABC")])
    add_optout(tmp_path, [entry("entity", "tomas  okafor")])
    text = (tmp_path / "optout.jsonl").read_text()
    assert len(text.splitlines()) == 2
    assert "Okafor" not in text
    assert ("id", "abc") in read_optout(tmp_path).entries
    (tmp_path / "optout.jsonl").write_text("{broken")
    with pytest.raises(TerminalError, match="opt-out"):
        read_optout(tmp_path)


@given(st.text())
def test_normal_forms_are_stable(text: str) -> None:
    assert normal_text(normal_text(text)) == normal_text(text)


@pytest.mark.parametrize("url", ["https://[::1", "http://x.example:99999/a", "http://[x]/", "not a url", " "])
def test_what_is_no_url_is_compared_as_it_is(url: str) -> None:
    assert normal_url(url) == normal_url(url)
    assert url_domains(url) == [] or "x.example" in url_domains(url)
    with pytest.raises(ConfigError, match="not an address"):
        Wish(urls=(url,)).check()


def test_urls_are_compared_by_what_they_name() -> None:
    assert normal_url("https://www.A.example:8080/x/?b=1#c") == "a.example:8080/x?b=1"
    assert url_domains("https://news.a.example/x") == ["news.a.example", "a.example", "example"]
