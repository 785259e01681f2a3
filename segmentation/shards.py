"""Sharing a window's questions out into shards: all questions of an image go into one shard.

The plan depends on the questions alone, so that every worker makes the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.schema import Question


def plan(questions: Sequence[Question], *, images_per_shard: int) -> list[tuple[Question, ...]]:
    """Shards of about `images_per_shard` images, questions sorted by images and id.

    Questions that share an image, directly or over others, stay together even where that makes a shard larger.
    Raises ValueError for a size below 1.
    """
    if images_per_shard < 1:
        raise ValueError(f"a shard has at least one image, got {images_per_shard}")
    groups = _groups(questions)
    shards: list[tuple[Question, ...]] = []
    current: list[Question] = []
    held = 0
    for group in groups:
        size = len({image for question in group for image in question.images})
        if current and held + size > images_per_shard:
            shards.append(tuple(current))
            current, held = [], 0
        current += group
        held += size
    if current:
        shards.append(tuple(current))
    return shards


def _groups(questions: Sequence[Question]) -> list[list[Question]]:
    """Questions that share images, each group sorted, groups by their first image's digest."""
    parent: dict[str, str] = {}

    def root(image: str) -> str:
        while parent.setdefault(image, image) != image:
            parent[image] = parent[parent[image]]
            image = parent[image]
        return image

    for question in questions:
        for image in question.images[1:]:
            first, second = sorted((root(question.images[0]), root(image)))
            parent[second] = first
    found: dict[str, list[Question]] = {}
    for question in sorted(questions, key=lambda item: (item.images, item.id)):
        # a question without images cannot be annotated, and still must come out as rejected
        found.setdefault(root(question.images[0]) if question.images else f"~{question.id}", []).append(question)
    return [found[key] for key in sorted(found)]
