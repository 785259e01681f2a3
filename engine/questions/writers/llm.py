"""The writer with a language model: one request per article and its pictures, the reply as drafts.

The prompt is a versioned file; what the model claims (type, place, kind) is checked against the caption where the
caption says something. Transport, structured output and retries are `engine.llm`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from engine.core.config import AskSection
from engine.core.protocols import Blobs, ChatModel, ChatReply, ChatRequest
from engine.core.schema import Article, Code, Entity, EntityType, ImageRef, QuestionKind, Rejected, Stage, Writer
from engine.llm.prompts import Prompt, load_prompt
from engine.questions.aliases import aliases_of
from engine.questions.captions import read_caption
from engine.questions.draft import Draft
from engine.questions.facts import surname_of
from engine.questions.lexicon import PRODUCT_PHRASES
from engine.questions.text import fold, level, sentences

VERSION = "1"
PACKAGE = "engine.questions"
#: Longest part of a text that is sent, in characters (about 2,000 tokens); its beginning and what names the pictured.
TEXT_CHARS = 8_000
#: After "too long" the text is halved this often.
SHORTER_TRIES = 3
_CODES: Mapping[str, Code] = {
    "refused": Code.REPLY_REFUSED,
    "truncated": Code.REPLY_TRUNCATED,
    "filtered": Code.REPLY_FILTERED,
    "empty": Code.REPLY_EMPTY,
    "invalid": Code.REPLY_INVALID,
    "error": Code.REPLY_ERROR,
    "too_long": Code.REPLY_ERROR,
}
_TEXT = {"type": "string", "maxLength": 600}
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "image": {"type": "integer"},
                    "entity": _TEXT,
                    "entity_type": {"type": "string", "enum": ["person", "product"]},
                    "phrase": _TEXT,
                    "position": _TEXT,
                    "question": _TEXT,
                    "answer": _TEXT,
                    "evidence": {"type": "string", "maxLength": 2000},
                    "kind": {"type": "string", "enum": ["novel", "emerging"]},
                    "aliases": {"type": "array", "items": _TEXT, "maxItems": 12},
                },
                "required": ["entity", "entity_type", "question", "answer", "evidence"],
            },
        }
    },
    "required": ["pairs"],
}


class LlmWriter:
    """Asks a chat model. `blobs` is needed where the model sees images (`[llm] sees_images`)."""

    name = "llm"
    schema: ClassVar[Mapping[str, object]] = SCHEMA

    def __init__(self, chat: ChatModel, prompt: Prompt, *, blobs: Blobs | None = None) -> None:
        self.chat = chat
        self.prompt = prompt
        self.blobs = blobs

    @classmethod
    def of(cls, config: AskSection, chat: ChatModel, *, blobs: Blobs | None = None) -> LlmWriter:
        return cls(chat, load_prompt(PACKAGE, config.prompt), blobs=blobs)

    def identity(self) -> Writer:
        told = f"{self.prompt.name}@{self.prompt.digest[:12]}"
        return Writer(name=self.name, version=VERSION, model=self.chat.name, prompt=told)

    async def write(self, article: Article, config: AskSection) -> list[Draft | Rejected]:
        images = [image for image in article.images if image.caption.strip()]
        lost: list[Draft | Rejected] = [
            _rejected(article, Code.NO_ENTITY, "no caption", item=image.sha256)
            for image in article.images
            if not image.caption.strip()
        ]
        if not images:
            return lost
        chars = TEXT_CHARS
        for _ in range(SHORTER_TRIES + 1):
            reply = await self.chat.complete(self.request(article, images, config, chars=chars))
            if reply.status != "too_long":
                break
            chars //= 2
        return [*lost, *self.read(reply, article, images)]

    def request(
        self, article: Article, images: Sequence[ImageRef], config: AskSection, *, chars: int = TEXT_CHARS
    ) -> ChatRequest:
        """The request for an article's pictures with at most `chars` characters of its text."""
        captions = "\n".join(f"Picture {number}: {image.caption}" for number, image in enumerate(images, 1))
        system, user = self.prompt.fill(
            per_image=str(config.max_questions_per_image),
            day=article.day(),
            title=article.title,
            captions=captions,
            text=relevant_text(article, images, chars=chars),
        )
        pictures = tuple(self.blobs.get(image.sha256, image.ext) for image in images) if self.blobs else ()
        return ChatRequest(
            system=system,
            user=user,
            schema=self.schema,
            schema_name="questions",
            images=pictures,
            max_tokens=config.reply_tokens,
            purpose="ask.write",
        )

    def read(self, reply: ChatReply, article: Article, images: Sequence[ImageRef]) -> list[Draft | Rejected]:
        """Drafts of a reply, or one `Rejected` with the reply's kind."""
        if reply.status != "ok" or reply.data is None:
            return [_rejected(article, _CODES.get(reply.status, Code.REPLY_ERROR), reply.detail[:200])]
        pairs = cast(Sequence[Mapping[str, Any]], reply.data["pairs"])
        if not pairs:
            return [_rejected(article, Code.NO_ENTITY, "the model found nothing to ask for")]
        return [_draft(pair, article, images) for pair in pairs]


def relevant_text(article: Article, images: Sequence[ImageRef], *, chars: int) -> str:
    """The text if it is short enough, else its first sentences and those that name someone in the captions."""
    if len(article.text) <= chars:
        return article.text
    names = {
        fold(entity.name.split()[-1]) for image in images for entity in read_caption(image.caption, text=article.text)
    }
    parts = sentences(article.text)
    ranked = sorted(range(len(parts)), key=lambda place: (place > 2, not _names(parts[place], names), place))
    chosen: list[int] = []
    left = chars
    for place in ranked:
        if len(parts[place]) + 1 <= left:
            chosen.append(place)
            left -= len(parts[place]) + 1
    return " ".join(parts[place] for place in sorted(chosen)) or article.text[:chars]


def _names(sentence: str, names: set[str]) -> bool:
    plain = fold(sentence)
    return any(name in plain for name in names)


def _draft(pair: Mapping[str, Any], article: Article, images: Sequence[ImageRef]) -> Draft | Rejected:
    number = pair.get("image", 1)
    if not isinstance(number, int) or not 1 <= number <= len(images):
        return _rejected(article, Code.REPLY_INVALID, f"the reply speaks of picture {number} of {len(images)}")
    image = images[number - 1]
    answer = level(str(pair["answer"]))
    kind = cast(EntityType, pair["entity_type"])
    told = read_caption(image.caption, text=article.text)
    same = next((entity for entity in told if _is_named(entity, answer)), None)
    phrase = level(str(pair.get("phrase") or "")).lower()
    if kind == "person":
        phrase = "person"
    elif same is not None and same.type == "product":
        phrase = same.phrase
    phrase = PRODUCT_PHRASES.get(phrase, phrase) or "object"
    # the caption's own place words win over what the model makes of them
    position = same.position if same is not None and same.position else _quoted_place(pair, image.caption)
    entities = told if same is not None else (*told, _entity(answer, kind, phrase, position, len(told)))
    return Draft(
        image=image,
        question=level(str(pair["question"])),
        answer=answer,
        entity_type=kind,
        phrase=phrase,
        evidence=str(pair["evidence"]),
        position=position,
        kind=cast(QuestionKind, pair.get("kind") or "emerging"),
        entities=entities,
        aliases=_aliases(pair, answer, kind, article, entities),
    )


def _is_named(entity: Entity, answer: str) -> bool:
    """By the whole name, or a person by the surname alone."""
    surname = surname_of(entity.name) if entity.type == "person" else ""
    return fold(answer) in {fold(entity.name), fold(surname)} - {""}


def _entity(name: str, kind: EntityType, phrase: str, position: str, order: int) -> Entity:
    return Entity(name=name, type=kind, phrase=phrase, position=position, order=order)


def _quoted_place(pair: Mapping[str, Any], caption: str) -> str:
    place = level(str(pair.get("position") or "")).lower()
    return place if place and place in fold(caption) else ""


def _aliases(
    pair: Mapping[str, Any], answer: str, kind: EntityType, article: Article, entities: tuple[Entity, ...]
) -> tuple[str, ...]:
    """Our own, and those of the model that the article really uses."""
    own = aliases_of(answer, kind, article.text, others=entities)
    claimed = [level(str(alias)) for alias in pair.get("aliases") or ()]
    used = {alias for alias in claimed if fold(alias) in fold(article.text) and fold(alias) != fold(answer)}
    return tuple(sorted({*own, *used}))


def _rejected(article: Article, code: Code, detail: str, *, item: str = "") -> Rejected:
    return Rejected(
        item=item or article.id, stage=Stage.ASK, code=code, detail=detail, parent=article.url, source=article.source
    )
