"""The writer without a model: the article's own sentence about a pictured entity, turned into a question.

"Eileen Collins commanded the STS-93 mission." becomes "Which person in the image commanded the STS-93 mission?".
Deterministic; entities and places come from caption patterns, and from a recogniser of names where `[ask] recogniser`
names one. Rows say that this writer made them, and with which recogniser.
"""

from __future__ import annotations

import re

from engine.core.config import AskSection
from engine.core.schema import Article, Code, Entity, ImageRef, QuestionKind, Rejected, Stage, Writer
from engine.questions.aliases import aliases_of
from engine.questions.draft import Draft
from engine.questions.facts import Fact, facts_about
from engine.questions.recognise import Recogniser, read_names

VERSION = "1"
#: A fact this many years before the article is no news of a product.
OLD_YEARS = 2
PLURAL = frozenset({"headphones", "glasses", "earbuds"})


class TemplateWriter:
    """Writes at most one question per entity and image, in the caption's order."""

    name = "template"

    def __init__(self, recogniser: Recogniser | None = None) -> None:
        self.recogniser = recogniser

    def identity(self) -> Writer:
        found = self.recogniser
        return Writer(name=self.name, version=VERSION, model=f"{found.name} {found.version}" if found else "")

    async def write(self, article: Article, config: AskSection) -> list[Draft | Rejected]:
        return write_from_text(article, config, recogniser=self.recogniser)


def write_from_text(
    article: Article, config: AskSection, *, recogniser: Recogniser | None = None
) -> list[Draft | Rejected]:
    """All drafts of an article; an image without a usable entity or fact is a `Rejected` with the image's digest."""
    found: list[Draft | Rejected] = []
    used: set[str] = set()
    for image in article.images:
        entities = read_names(image.caption, text=article.text, recogniser=recogniser)
        wanted = [entity for entity in entities if entity.type in config.entity_types]
        if not wanted:
            told = f"no person or product in the caption: {image.caption[:120]!r}" if image.caption else "no caption"
            found.append(_rejected(article, image, Code.NO_ENTITY, told))
        for entity in wanted:
            fact = next((fact for fact in _facts(entity, entities, article) if fact.predicate not in used), None)
            if fact is None:
                told = f"no sentence of the text says what {entity.name} did"
                found.append(_rejected(article, image, Code.NO_FACT, told))
                continue
            used.add(fact.predicate)
            found.append(_draft(image, entity, entities, fact, article))
    return found


def question_for(entity: Entity, predicate: str) -> str:
    """The question: correct English needs no more than the right noun in front of the article's predicate."""
    noun = "person" if entity.type == "person" else entity.phrase
    return f"Which {noun} in the image {predicate}?"


def _facts(entity: Entity, entities: tuple[Entity, ...], article: Article) -> list[Fact]:
    facts = facts_about(entity, article.text, others=entities)
    if entity.phrase in PLURAL:
        return [fact for fact in facts if fact.predicate.split()[0] not in {"is", "was", "has", "does"}]
    return facts


def _draft(image: ImageRef, entity: Entity, entities: tuple[Entity, ...], fact: Fact, article: Article) -> Draft:
    return Draft(
        image=image,
        question=question_for(entity, fact.predicate),
        answer=entity.name,
        entity_type=entity.type,
        phrase=entity.phrase,
        evidence=fact.sentence,
        position=entity.position,
        kind=_kind(entity, fact, article),
        entities=entities,
        aliases=aliases_of(entity.name, entity.type, article.text, others=entities),
    )


def _kind(entity: Entity, fact: Fact, article: Article) -> QuestionKind:
    """A claim: a product in the news is new to any model unless its fact lies years back; a person is not."""
    years = [int(year) for year in re.findall(r"\b(?:19|20)\d\d\b", fact.sentence)]
    this = article.published_at.year if article.published_at else max(years, default=0)
    return "novel" if entity.type == "product" and all(year > this - OLD_YEARS for year in years) else "emerging"


def _rejected(article: Article, image: ImageRef, code: Code, detail: str) -> Rejected:
    return Rejected(
        item=image.sha256, stage=Stage.ASK, code=code, detail=detail, parent=article.url, source=article.source
    )
