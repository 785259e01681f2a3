"""The whole-window step: articles that are there twice, stories told by several publishers, photos met again.

`reduce` does it for articles in memory. A window that is larger goes through the same three steps one article at a
time: `card_of` each, `plan` with the cards, `settle` those that stay. Reducing what was reduced before changes
nothing, and two halves of a week reduced together give the week.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.core.config import CollectSection
from engine.core.schema import Article, Code, ImageRef, Rejected, Stage
from engine.news.photogroups import Photo, PhotoGroups, group_photos, photo_of
from engine.news.stories import Sketch, clusters, pairs_of, sketch_of

NEAR_MATCH = "near match: "


@dataclass(frozen=True, slots=True)
class Card:
    """What is remembered of an article while all are gone through. `told` counts its captioned photos, `digest` is of
    the whole record: the same address with the same record is no loss."""

    id: str
    url: str
    source: str
    published: datetime
    told: int
    digest: bytes
    sketch: Sketch
    photos: tuple[Photo, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`stories` holds the positions of the articles that stay, with their story's label."""

    stories: dict[int, str]
    lost: tuple[Rejected, ...]
    photos: PhotoGroups


def card_of(article: Article) -> Card:
    return Card(
        id=article.id,
        url=article.url,
        source=article.source,
        published=article.published_at or datetime.max.replace(tzinfo=UTC),
        told=sum(bool(image.caption) for image in article.images),
        digest=hashlib.sha256(article.line().encode()).digest(),
        sketch=sketch_of(article.text),
        photos=tuple(photo_of(image) for image in article.images),
    )


def reduce(articles: Sequence[Article], config: CollectSection) -> list[Article | Rejected]:
    """Articles by id, each once, then the duplicates. The order of the input does not matter.

    Of duplicates the earliest stays, then the one with more captioned photos. One photo in several stories stays in
    all of them, as one file: the largest (a story is no duplicate because of its picture).
    """
    found = plan([card_of(article) for article in articles], lambda index: articles[index].text, config)
    done = [settle(articles[index], label, found) for index, label in found.stories.items()]
    return [*sorted(done, key=lambda article: article.id), *found.lost]


def plan(cards: Sequence[Card], text_of: Callable[[int], str], config: CollectSection) -> Plan:
    """Decide what stays. `text_of` gives the text of the article at a position; it is asked for few of them."""
    order = sorted(range(len(cards)), key=lambda index: _rank(cards[index]))
    first: dict[str, int] = {}
    lost: list[Rejected] = []
    for index in order:
        card = cards[index]
        kept = first.setdefault(card.id, index)
        if kept != index and cards[kept].digest != card.digest:
            lost.append(_lost(card, Code.DUPLICATE_URL, f"the same address as {cards[kept].url}"))
    unique = list(first.values())
    same, story = pairs_of([cards[index].sketch for index in unique], lambda position: text_of(unique[position]))
    leader = _leaders(len(unique), same)
    staying = [position for position in range(len(unique)) if leader[position] == position]
    place = {position: number for number, position in enumerate(staying)}
    labels = clusters(len(staying), [(place[a], place[b]) for a, b in story if a in place and b in place])
    names: dict[int, str] = {}
    for number, label in enumerate(labels):
        own = cards[unique[staying[number]]].id
        names[label] = min(names.get(label, own), own)
    for position, index in enumerate(unique):
        if position not in place:
            told = f"the same text as {cards[unique[leader[position]]].url}"
            lost.append(_lost(cards[index], Code.DUPLICATE_STORY, told))
    stories = {unique[position]: names[labels[number]] for number, position in enumerate(staying)}
    photos = (photo for index in stories for photo in cards[index].photos)
    groups = group_photos(photos, bits=config.near_duplicate_bits)
    return Plan(stories, tuple(sorted(lost, key=lambda item: (item.item, item.code.value, item.detail))), groups)


def settle(article: Article, label: str, found: Plan) -> Article:
    """An article that stays, with its story's label, the largest files of its photos, and notes of near matches."""
    images = tuple(_repointed(image, found.photos.best[image.sha256]) for image in article.images)
    notes = [note for note in article.notes if not note.startswith(NEAR_MATCH)]
    notes += [
        f"{NEAR_MATCH}{image.url} is like {url} ({apart} of 64 bits differ)"
        for image in images
        for url, apart in found.photos.near.get(image.sha256, ())
    ]
    return article.model_copy(update={"story": label, "images": images, "notes": tuple(notes)})


def _rank(card: Card) -> tuple[datetime, int, str, str]:
    return card.published, -card.told, card.id, card.url


def _leaders(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """For each index, itself or the first earlier one that it repeats and that is no repetition itself.

    No chains: what repeats a repetition only is kept, so that a half of the week decides as the whole does.
    """
    earlier: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        earlier[max(a, b)].append(min(a, b))
    leader = list(range(count))
    for index in range(count):
        leader[index] = next((other for other in sorted(earlier[index]) if leader[other] == other), index)
    return leader


def _lost(card: Card, code: Code, detail: str) -> Rejected:
    return Rejected(item=card.url, stage=Stage.COLLECT, code=code, detail=detail, source=card.source)


def _repointed(image: ImageRef, file: Photo) -> ImageRef:
    """The same picture of a story, as the largest file; address and words stay the story's own."""
    if file.sha256 == image.sha256:
        return image
    told = {name: getattr(file, name) for name in ("sha256", "ext", "width", "height", "phash")}
    return image.model_copy(update=told)
