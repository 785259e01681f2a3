"""The whole-window step: articles that are there twice, stories told by several publishers, photos met again.

Reducing what was reduced before changes nothing, and two halves of a week reduced together give the week.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from engine.core.config import CollectSection
from engine.core.schema import Article, Code, ImageRef, Rejected, Stage
from engine.news.stories import clusters, pairs_of

#: Photos whose hashes differ in more bits than one photo's may, but in no more than this, are told as near matches:
#: a tighter crop, a bar at the foot. Photos taken at random differ in 32 of 64 bits, and in 16 once in 30,000 pairs.
NEAR_MATCH_BITS = 16
NEAR_MATCH = "near match: "
#: Hashes compared at a time with all others; 512 by 10,000 are 40 MB.
BLOCK = 512


def reduce(articles: Sequence[Article], config: CollectSection) -> list[Article | Rejected]:
    """Articles by id, each once, then the duplicates. The order of the input does not matter.

    Of duplicates the earliest stays, then the one with more captioned photos. One photo in several stories stays in
    all of them, as one file: the largest (a story is no duplicate because of its picture).
    """
    ordered = sorted(articles, key=_rank)
    unique: dict[str, Article] = {}
    lost: list[Rejected] = []
    for article in ordered:
        first = unique.setdefault(article.id, article)
        if first is not article and first != article:
            lost.append(_lost(article, Code.DUPLICATE_URL, f"the same address as {first.url}"))
    kept = list(unique.values())
    same, story = pairs_of(kept)
    first_of = _leaders(len(kept), same)
    survivors = [index for index in range(len(kept)) if first_of[index] == index]
    place = {index: position for position, index in enumerate(survivors)}
    labels = clusters(len(survivors), [(place[a], place[b]) for a, b in story if a in place and b in place])
    told = [kept[index] for index in survivors]
    names = _story_names(told, labels)
    told = [article.model_copy(update={"story": names[labels[index]]}) for index, article in enumerate(told)]
    for index, article in enumerate(kept):
        if index not in place:
            lost.append(_lost(article, Code.DUPLICATE_STORY, f"the same text as {kept[first_of[index]].url}"))
    done = _with_near_matches(_one_file_per_photo(told, bits=config.near_duplicate_bits), config.near_duplicate_bits)
    return [
        *sorted(done, key=lambda a: a.id),
        *sorted(lost, key=lambda item: (item.item, item.code.value, item.detail)),
    ]


def _rank(article: Article) -> tuple[datetime, int, str, str]:
    told = sum(bool(image.caption) for image in article.images)
    return article.published_at or datetime.max.replace(tzinfo=UTC), -told, article.id, article.url


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


def _lost(article: Article, code: Code, detail: str) -> Rejected:
    return Rejected(item=article.url, stage=Stage.COLLECT, code=code, detail=detail, source=article.source)


def _story_names(articles: Sequence[Article], labels: Sequence[int]) -> dict[int, str]:
    names: dict[int, str] = {}
    for index, label in enumerate(labels):
        names[label] = min(names.get(label, articles[index].id), articles[index].id)
    return names


def _one_file_per_photo(articles: Sequence[Article], *, bits: int) -> list[Article]:
    """Let every copy of a photo point to its largest file; captions stay each story's own."""
    photos: dict[str, ImageRef] = {}
    for article in articles:
        for image in article.images:
            photos.setdefault(image.sha256, image)
    files = sorted(photos.values(), key=lambda image: image.sha256)
    pairs = _near_pairs([image.phash for image in files], bits=bits)
    groups = clusters(len(files), pairs)
    best: dict[int, ImageRef] = {}
    for index, group in enumerate(groups):
        image, old = files[index], best.get(group)
        if old is None or (image.width * image.height, old.sha256) > (old.width * old.height, image.sha256):
            best[group] = image
    place = {image.sha256: best[groups[index]] for index, image in enumerate(files)}
    return [article.model_copy(update={"images": _repoint(article.images, place)}) for article in articles]


def _repoint(images: tuple[ImageRef, ...], place: dict[str, ImageRef]) -> tuple[ImageRef, ...]:
    done = []
    for image in images:
        file = place[image.sha256]
        if file.sha256 != image.sha256:
            image = image.model_copy(
                update={
                    "sha256": file.sha256,
                    "ext": file.ext,
                    "width": file.width,
                    "height": file.height,
                    "phash": file.phash,
                }
            )
        done.append(image)
    return tuple(done)


def _with_near_matches(articles: Sequence[Article], bits: int) -> list[Article]:
    """A note for each photo that is nearly another one: nothing is joined, but whoever looks can tell."""
    found = [(number, image) for number, article in enumerate(articles) for image in article.images]
    photos = {image.sha256: image for _, image in found}
    files = sorted(photos.values(), key=lambda image: image.sha256)
    near: dict[str, list[tuple[str, int]]] = {}
    if bits < NEAR_MATCH_BITS:
        hashes = [image.phash for image in files]
        for a, b in _near_pairs(hashes, bits=NEAR_MATCH_BITS):
            apart = (int(hashes[a], 16) ^ int(hashes[b], 16)).bit_count()
            if apart > bits:
                near.setdefault(files[a].sha256, []).append((files[b].url, apart))
                near.setdefault(files[b].sha256, []).append((files[a].url, apart))
    done = []
    for article in articles:
        notes = [note for note in article.notes if not note.startswith(NEAR_MATCH)]
        notes += [
            f"{NEAR_MATCH}{image.url} is like {url} ({apart} of 64 bits differ)"
            for image in article.images
            for url, apart in sorted(near.get(image.sha256, []))
        ]
        done.append(article.model_copy(update={"notes": tuple(notes)}) if tuple(notes) != article.notes else article)
    return done


def _near_pairs(hashes: Sequence[str], *, bits: int) -> list[tuple[int, int]]:
    """Pairs of hashes that differ in at most `bits` bits, by position."""
    values = np.array([int(value, 16) for value in hashes], dtype=np.uint64)
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK]
        apart = np.bitwise_count(block[:, None] ^ values[None, start:])
        rows, columns = np.nonzero(apart <= bits)
        later = columns > rows
        pairs += [(start + int(a), start + int(b)) for a, b in zip(rows[later], columns[later], strict=True)]
    return pairs
