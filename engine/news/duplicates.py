"""The whole-window step: articles that are there twice, stories told by several publishers, photos met again.

`reduce` does it for articles in memory. A window that is larger goes through the same three steps one article at a
time: `Cards` of all, `plan` with the cards, `settle` those that stay. Reducing what was reduced before changes
nothing. A window is decided from what lies in it alone, so that it is no matter in which order windows are collected:
the later half of a week keeps what repeats the earlier half, and the whole week does not (docs/news.md).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.core.config import CollectSection
from engine.core.schema import Article, Code, ImageRef, Rejected, Stage
from engine.news.cards import ArticleOf, Cards
from engine.news.photogroups import PhotoGroups, group_photos
from engine.news.stories import clusters, pairs_of

__all__ = ["Cards", "Plan", "losses", "plan", "reduce", "settle"]

NEAR_MATCH = "near match: "


@dataclass(frozen=True, slots=True)
class Plan:
    """`staying` holds the positions of the articles that stay, by id, and `labels` their stories' labels; `lost` the
    position of each duplicate, why it is one, and of what."""

    staying: Sequence[int]
    labels: Sequence[str]
    lost: tuple[tuple[int, Code, int], ...]
    photos: PhotoGroups


def reduce(articles: Sequence[Article], config: CollectSection) -> list[Article | Rejected]:
    """Articles by id, each once, then the duplicates. The order of the input does not matter.

    Of duplicates the earliest stays, then the one with more captioned photos. One photo in several stories stays in
    all of them, as one file: the largest (a story is no duplicate because of its picture).
    """
    found = plan(Cards(articles), articles.__getitem__, config)
    done = [settle(articles[index], label, found) for index, label in zip(found.staying, found.labels, strict=True)]
    lost = sorted(losses(found, articles.__getitem__), key=lambda item: (item.item, item.code.value, item.detail))
    return [*done, *lost]


def plan(cards: Cards, article_of: ArticleOf, config: CollectSection) -> Plan:
    """Decide what stays. `article_of` gives the article at a position again; it is asked for few of them."""
    first: dict[str, int] = {}
    lost: list[tuple[int, Code, int]] = []
    for index in cards.ranked(article_of):
        met = first.setdefault(cards.ids[index], index)
        # the same address with the same record is no loss
        if met != index and article_of(met).line() != article_of(index).line():
            lost.append((index, Code.DUPLICATE_URL, met))
    unique = array("q", first.values())
    del first
    same, story = pairs_of(cards.sketches, lambda position: article_of(unique[position]).text, rows=unique)
    leader = _leaders(same)
    lost += [(unique[position], Code.DUPLICATE_STORY, unique[other]) for position, other in sorted(leader.items())]
    staying = array("q", (position for position in range(len(unique)) if position not in leader))
    place = array("q", [-1]) * len(unique)
    for number, position in enumerate(staying):
        place[position] = number
    labels = clusters(len(staying), [(place[a], place[b]) for a, b in story if place[a] >= 0 and place[b] >= 0])
    kept = array("q", (unique[position] for position in staying))
    del staying, place
    names = [""] * len(kept)
    for label, index in zip(labels, kept, strict=True):
        names[label] = min(names[label] or cards.ids[index], cards.ids[index])
    by_id = array("q", sorted(range(len(kept)), key=lambda number: cards.ids[kept[number]]))
    named = [names[labels[number]] for number in by_id]
    del names, labels
    groups = group_photos(cards.photos, kept, article_of, bits=config.near_duplicate_bits)
    return Plan(array("q", (kept[number] for number in by_id)), named, tuple(lost), groups)


def settle(article: Article, label: str, found: Plan) -> Article:
    """An article that stays, with its story's label, the largest files of its photos, and notes of near matches."""
    images = tuple(_repointed(image, found.photos.larger.get(image.sha256)) for image in article.images)
    notes = [note for note in article.notes if not note.startswith(NEAR_MATCH)]
    notes += [
        f"{NEAR_MATCH}{image.url} is like {url} ({apart} of 64 bits differ)"
        for image in images
        for url, apart in found.photos.near.get(image.sha256, ())
    ]
    return article.model_copy(update={"story": label, "images": images, "notes": tuple(notes)})


def losses(found: Plan, article_of: ArticleOf) -> Iterator[Rejected]:
    """The duplicates of a plan, in no order that means anything."""
    told = {Code.DUPLICATE_URL: "the same address as", Code.DUPLICATE_STORY: "the same text as"}
    for index, code, other in found.lost:
        article = article_of(index)
        detail = f"{told[code]} {article_of(other).url}"
        yield Rejected(item=article.url, stage=Stage.COLLECT, code=code, detail=detail, source=article.source)


def _leaders(pairs: Sequence[tuple[int, int]]) -> dict[int, int]:
    """For each index that repeats an earlier one the first that it repeats and that is no repetition itself.

    No chains: what repeats a repetition only is kept, since what it repeats is not there any more.
    """
    earlier: dict[int, list[int]] = {}
    for a, b in pairs:
        earlier.setdefault(max(a, b), []).append(min(a, b))
    leader: dict[int, int] = {}
    for index in sorted(earlier):
        found = next((other for other in sorted(earlier[index]) if other not in leader), None)
        if found is not None:
            leader[index] = found
    return leader


def _repointed(image: ImageRef, file: ImageRef | None) -> ImageRef:
    """The same picture of a story, as the largest file; address and words stay the story's own."""
    if file is None:
        return image
    told = {name: getattr(file, name) for name in ("sha256", "ext", "width", "height", "phash")}
    return image.model_copy(update=told)
