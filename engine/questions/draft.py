"""What a writer hands over: a question before it is checked, and the Protocol of writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from engine.core.config import AskSection
from engine.core.schema import Article, Entity, EntityType, ImageRef, QuestionKind, Rejected, Writer


@dataclass(frozen=True, slots=True)
class Draft:
    """A question, its answer and where both come from. `image` is a picture of the article."""

    image: ImageRef
    question: str
    answer: str
    entity_type: EntityType
    phrase: str
    evidence: str
    position: str = ""
    kind: QuestionKind = "emerging"
    entities: tuple[Entity, ...] = ()
    aliases: tuple[str, ...] = ()
    evidence_in: Literal["caption", "text"] = "text"


class QuestionWriter(Protocol):
    """Writes questions for one article; a bad article or reply is a `Rejected` value with its code."""

    name: str

    def identity(self) -> Writer:
        """What stands in each row: name, version, model, prompt."""
        ...

    async def write(self, article: Article, config: AskSection) -> list[Draft | Rejected]: ...
