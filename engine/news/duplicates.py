"""The whole-window step: articles that are there twice, stories told by several publishers, photos met again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from engine.core.config import CollectSection
from engine.core.schema import Article, Code, ImageRef, Rejected, Stage
from engine.news.stories import clusters, pairs_of


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
    heads = clusters(len(kept), same)
    labels = clusters(len(kept), story)
    names = _story_names(kept, labels)
    survivors: list[Article] = []
    for index, article in enumerate(kept):
        if heads[index] != index:
            lost.append(_lost(article, Code.DUPLICATE_STORY, f"the same text as {kept[heads[index]].url}"))
            continue
        survivors.append(article.model_copy(update={"story": names[labels[index]]}))
    done = _one_file_per_photo(survivors, bits=config.near_duplicate_bits)
    return [
        *sorted(done, key=lambda a: a.id),
        *sorted(lost, key=lambda item: (item.item, item.code.value, item.detail)),
    ]


def _rank(article: Article) -> tuple[datetime, int, str, str]:
    told = sum(bool(image.caption) for image in article.images)
    return article.published_at or datetime.max.replace(tzinfo=UTC), -told, article.id, article.url


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


def _near_pairs(hashes: Sequence[str], *, bits: int) -> list[tuple[int, int]]:
    """Pairs of hashes that differ in at most `bits` bits.

    Hashes are cut into bits + 1 bands: two that differ so little are equal in at least one of them (pigeonhole), so
    only those are compared.
    """
    values = [int(value, 16) for value in hashes]
    bands = bits + 1
    edges = [64 * i // bands for i in range(bands + 1)]
    pairs: set[tuple[int, int]] = set()
    for low, high in itertools.pairwise(edges):
        mask = ((1 << (high - low)) - 1) << low
        buckets: dict[int, list[int]] = {}
        for index, value in enumerate(values):
            buckets.setdefault(value & mask, []).append(index)
        for bucket in buckets.values():
            for position, a in enumerate(bucket):
                pairs.update((a, b) for b in bucket[position + 1 :] if (values[a] ^ values[b]).bit_count() <= bits)
    return sorted(pairs)
