"""Records of the ask stage: a question about a named entity in the images of an article."""

from __future__ import annotations

from typing import Literal

from engine.core.schema.base import Record, Value

EntityType = Literal["person", "product"]
QuestionKind = Literal["novel", "emerging"]


class Entity(Value):
    """A named entity that a caption says is in the picture.

    `position` holds the caption's own place words ("left", "second from right", "holding the trophy"),
    empty when there are none. `order` is the place of the name in the caption, from 0.
    """

    name: str
    type: EntityType
    phrase: str
    position: str = ""
    order: int = 0


class Check(Value):
    """The verdict of one check on a question, kept with it."""

    name: str
    passed: bool
    detail: str = ""


class Writer(Value):
    """Who wrote the question: the name in the config, its version, and the model and prompt if any."""

    name: str
    version: str
    model: str = ""
    prompt: str = ""


class BlindAnswer(Value):
    """What a named model answers without the news; kept for the novel/emerging split."""

    model: str
    with_image: bool
    answer: str
    matches: bool


class Question(Record):
    """A question whose answer is the name of an entity in `images` (blob digests of the article's images).

    `entities` are all named entities of the picture's caption, the answer among them, so that the binder
    knows who else is there. `evidence` is a verbatim quotation of the caption or the text.
    """

    id: str
    article_id: str
    article_url: str
    images: tuple[str, ...]
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    entity_type: EntityType
    kind: QuestionKind
    phrase: str
    position: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    evidence: str = ""
    evidence_in: Literal["caption", "text"] = "text"
    writer: Writer
    checks: tuple[Check, ...] = ()
    blind: tuple[BlindAnswer, ...] = ()
