"""The week's stories: dates, domains, faults, and each asked-for fact in a second story."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from engine.core.schema import Code
from engine.core.windows import parse_window
from flows.sample.articles import IMAGES, SITES, Story, stories
from flows.sample.config import FIRST, LABEL, LAST
from flows.sample.truth import known_entities

WINDOW = parse_window(LABEL)
STORIES = stories()
#: Codes that say that no article comes of a page.
NO_ARTICLE = {
    "outside_window", "no_date", "duplicate_story", "no_image", "paywall", "robots_disallowed", "fetch_gone",
    "live_blog", "ai_opt_out", "date_conflict",
}  # fmt: skip
KEPT = [story for story in STORIES if not NO_ARTICLE & set(story.expect)]
SCENES = {f"{entity.scene}.jpg" for entity in known_entities()}


def test_window() -> None:
    assert (WINDOW.first, WINDOW.last) == (FIRST, LAST)
    assert FIRST.weekday() == 0


def test_enough_stories_on_three_sites_in_all_domains() -> None:
    assert len(KEPT) >= 24
    assert {story.site.key for story in KEPT} == set(SITES)
    assert {site.list_kind for site in SITES.values()} == {"rss", "atom", "sitemap"}
    assert {story.section for story in KEPT} == {
        "Economy", "Technology", "Politics", "Entertainment", "Sports", "Society"
    }  # fmt: skip
    assert len({story.url for story in STORIES}) == len(STORIES)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.slug)
def test_dates(story: Story) -> None:
    if "no_date" in story.expect:
        assert story.published is None
        return
    assert story.published is not None
    assert story.published.tzinfo is not None
    assert WINDOW.contains(story.published) is ("outside_window" not in story.expect)


def test_faults_are_known_codes_and_of_every_kind() -> None:
    seen = {code for story in STORIES for code in story.expect}
    assert seen <= {code.value for code in Code}
    assert {
        "outside_window", "no_date", "duplicate_story", "no_image", "image_logo", "image_truncated", "paywall",
        "unbound", "robots_disallowed", "fetch_gone", "live_blog", "ai_opt_out", "date_conflict", "image_not_an_image",
        "image_duplicate", "no_candidate", "no_fact", "private_person",
    } <= seen  # fmt: skip
    for story in STORIES:
        assert not story.expect or story.note, story.slug


def test_every_scene_is_in_the_news_once_and_every_file_is_there() -> None:
    used: dict[str, list[str]] = defaultdict(list)
    for story in STORIES:
        for picture in story.pictures:
            used[picture.file].append(story.slug)
            assert (IMAGES / picture.file).is_file() or story.gone, picture.file
    assert set(used) >= SCENES
    assert {path.name for path in IMAGES.iterdir()} == set(used)


def test_captions_name_exactly_the_known_entities_in_order() -> None:
    known: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for entity in known_entities():
        known[f"{entity.scene}.jpg"].append((entity.name, entity.position))
    names = {entity.name for entity in known_entities()}
    for story in KEPT:
        for picture in story.pictures:
            found = sorted((picture.caption.find(name), name) for name in names if name in picture.caption)
            if picture.file in known:
                assert [name for _, name in found] == [name for name, _ in known[picture.file]], picture.caption
            if picture.file in SCENES:
                assert picture.credit


def test_persons_have_public_roles_at_two_publishers() -> None:
    role = re.compile(r"astronaut|admiral|computer scientist|programming pioneer")
    for name in ("Eileen Collins", "Grace Hopper"):
        sites = set()
        for story in KEPT:
            for paragraph in story.paragraphs:
                for sentence in re.split(r"(?<=\.)\s", paragraph):
                    if name in sentence and role.search(sentence):
                        sites.add(story.site.key)
        assert len(sites) >= 2, name


def _subject_sentences(name: str, story: Story) -> list[str]:
    start = re.compile(rf"^(?:The )?{re.escape(name)} [a-z]")
    return [
        sentence
        for paragraph in story.paragraphs
        for sentence in re.split(r"(?<=[.])\s", paragraph)
        if start.match(sentence)
    ]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) > 3 or word.isdigit()}


def test_each_fact_stands_in_another_story_too() -> None:
    """Retrieval must not read the sample's own article, so its fact has to be somewhere else."""
    asked = [story for story in KEPT if "no_fact" not in story.expect]
    checked = 0
    for entity in known_entities():
        owner = next(story for story in asked if any(p.file == f"{entity.scene}.jpg" for p in story.pictures))
        facts = _subject_sentences(entity.name, owner)
        assert facts, (entity.name, owner.slug)
        wanted = _words(facts[0]) - _words(entity.name)
        best = 0.0
        for story in KEPT:
            if story is owner:
                continue
            for paragraph in story.paragraphs:
                if entity.name in paragraph:
                    best = max(best, len(wanted & _words(paragraph)) / len(wanted))
        assert best >= 0.6, (entity.name, owner.slug, facts[0], best)
        checked += 1
    assert checked == len(known_entities())
