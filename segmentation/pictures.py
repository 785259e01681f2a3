"""The pictures of a shard, opened a few at a time, each with its questions and with everything that is named in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.core.geometry import Image
from engine.core.images import ImageError, open_image
from engine.core.protocols import Blobs, DetectRequest, References
from engine.core.schema import Entity, Question
from segmentation.binding import Named

#: Pictures of about so many pixels together are held at a time, however many `batch_images` allows.
BATCH_PIXELS = 16_000_000


@dataclass(frozen=True, slots=True)
class Picture:
    """An opened image with its questions and everything that is named in it."""

    image: str
    pixels: Image
    questions: tuple[Question, ...]
    names: tuple[Named, ...]

    @property
    def caption(self) -> str:
        """The first caption that the picture's questions carry."""
        return next((question.caption for question in self.questions if question.caption), "")

    def index_of(self, question: Question) -> int:
        """Which of the names a question's answer is."""
        known = {name.entity.name: index for index, name in enumerate(self.names)}
        return next(known[told] for told in (question.answer, *question.aliases) if told in known)

    def request(self, phrases: Iterable[str]) -> DetectRequest:
        exemplars: dict[str, tuple[Image, ...]] = {}
        for name in self.names:
            if name.references:
                exemplars[name.entity.phrase] = exemplars.get(name.entity.phrase, ()) + name.references
        return DetectRequest(self.pixels, tuple(dict.fromkeys(phrases)), exemplars)


def opened(
    wanted: Mapping[str, Sequence[Question]],
    *,
    blobs: Blobs,
    references: References | None,
    at_once: int,
    broken: Callable[[str, ImageError], None],
) -> Iterator[list[Picture]]:
    """Lists of opened pictures, at most `at_once` and about `BATCH_PIXELS` at a time; `broken` is told of the others.

    Raises what `blobs` raises for bytes that are gone.
    """
    pictures: list[Picture] = []
    held = 0
    for image in sorted(wanted):
        try:
            pixels = open_image(blobs.get(image)).pixels
        except ImageError as error:
            broken(image, error)
            continue
        size = pixels.shape[0] * pixels.shape[1]
        if pictures and held + size > BATCH_PIXELS:
            yield pictures
            pictures, held = [], 0
        pictures.append(Picture(image, pixels, tuple(wanted[image]), names_of(wanted[image], references)))
        held += size
        del pixels
        if len(pictures) == at_once:
            yield pictures
            pictures, held = [], 0
    if pictures:
        yield pictures


def names_of(questions: Sequence[Question], references: References | None) -> tuple[Named, ...]:
    """Everything that is named in a picture, in the caption's order; the answers are among it."""
    entities: dict[str, Entity] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    for question in questions:
        for entity in question.entities:
            entities.setdefault(entity.name, entity)
    for question in questions:
        told = next((name for name in (question.answer, *question.aliases) if name in entities), None)
        aliases[told or question.answer] = (question.answer, *question.aliases)
        if told is None:
            entities[question.answer] = Entity(
                name=question.answer,
                type=question.entity_type,
                phrase=question.phrase,
                position=question.position,
                order=len(entities),
            )
    ordered = sorted(entities.values(), key=lambda entity: (entity.order, entity.name))
    return tuple(
        Named(
            entity,
            references.of(entity.name, aliases=aliases.get(entity.name, ())) if references is not None else (),
        )
        for entity in ordered
    )
