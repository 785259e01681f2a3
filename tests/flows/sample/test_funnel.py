"""The week goes through collect and ask as each story says: the good ones come through, each fault has its code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.core.config import load_config
from engine.core.schema import Article, Question, Rejected
from flows.run import run_for
from flows.sample.articles import stories
from flows.sample.config import LABEL, sample_overrides
from flows.sample.server import SamplePublishers
from flows.sample.truth import known_pairs
from flows.stages import ask, collect

pytestmark = pytest.mark.slow

#: Codes that the collect stage gives; the others come later.
LATER = {"no_entity", "no_fact", "private_person", "no_candidate", "unbound"}


@dataclass(frozen=True, slots=True)
class Week:
    """What the two stages made of the sample week."""

    articles: tuple[Article, ...]
    lost: tuple[Rejected, ...]
    questions: tuple[Question, ...]
    refused: tuple[Rejected, ...]


def _rejected(folder: Path) -> tuple[Rejected, ...]:
    lines = (folder / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Rejected.read(json.loads(line)) for line in lines)


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    home = tmp_path_factory.mktemp("week")
    (home / "nest.toml").write_text('home = "."\n', encoding="utf-8")
    with SamplePublishers() as server:
        overrides = sample_overrides(server.port)
        run = run_for(load_config(home / "nest.toml", environ={}, overrides=overrides), LABEL)
        collect.do(run)
        ask.do(run)
        found, asked = collect.place(run), ask.place(run)
        assert asked is not None
        yield Week(
            articles=tuple(found.read(Article)),
            lost=_rejected(found.path),
            questions=tuple(asked.read(Question)),
            refused=_rejected(asked.path),
        )


def test_collect_refuses_exactly_what_is_wrong(week: Week) -> None:
    expected: Counter[tuple[str, str]] = Counter()
    for story in stories():
        expected.update((code, story.url) for code in story.expect if code not in LATER)
    # the lists themselves hold three more: two addresses twice, and a section front
    expected.update(
        ("duplicate_url", story.url)
        for story in stories()
        if story.slug in ("line-9-goes-electric", "code-day-in-schools")
    )
    expected["section_front", "http://circuit-courier.example/section/technology/"] += 1
    seen = Counter((item.code.value, (item.parent or item.item).split("?")[0]) for item in week.lost)
    assert seen == expected


def test_the_good_stories_come_through_with_their_pictures(week: Week) -> None:
    lost = {item.item for item in week.lost}
    kept = {article.canonical_url: article for article in week.articles}
    assert len(kept) == len(week.articles)
    for story in stories():
        assert (story.url in kept) is not (story.url in lost), story.slug
        if story.url in kept:
            article = kept[story.url]
            assert article.title == story.title
            assert article.published_at == story.published
            assert article.domain == {"Economy": "Economics"}.get(story.section, story.section)
            told = {picture.caption for picture in story.pictures}
            # the Herald prints the credit inside the caption
            assert all(any(image.caption.startswith(words) for words in told) for image in article.images)
            for paragraph in story.paragraphs:
                assert paragraph in " ".join(article.text.split())


def test_the_portrait_is_measured_upright(week: Week) -> None:
    image = next(
        image for article in week.articles for image in article.images if image.url.endswith("navy-portrait.jpg")
    )
    assert (image.width, image.height) == (640, 900)


def test_every_known_pair_is_asked_for(week: Week) -> None:
    asked = {(question.images[0], question.answer) for question in week.questions}
    assert known_pairs() <= asked
    # what is asked beyond the truth must end as Rejected: a vacuum that is not there, and two cups
    assert Counter(answer for image, answer in asked if (image, answer) not in known_pairs()) == {
        "Rondo M3": 1, "Alba Uno": 1, "Alba Due": 1
    }  # fmt: skip
    assert {question.kind for question in week.questions} == {"novel", "emerging"}


def test_places_are_the_captions(week: Week) -> None:
    from flows.sample.truth import known_entities

    told = {(entity.image, entity.name): entity.position for entity in known_entities()}
    for question in week.questions:
        if (question.images[0], question.answer) in told:
            assert question.position == told[question.images[0], question.answer], question.caption


def test_ask_refuses_for_the_stated_reasons(week: Week) -> None:
    by_url = {item.parent: set[str]() for item in week.refused}
    for item in week.refused:
        by_url[item.parent].add(item.code.value)
    for story in stories():
        for code in {"no_fact", "private_person", "no_entity"} & set(story.expect):
            assert code in by_url[story.url], story.slug
    assert {item.code.value for item in week.refused} == {"no_entity", "no_fact", "private_person"}
