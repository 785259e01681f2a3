"""The ask stage: articles in, checked questions out, every loss a `Rejected` with its code.

`run` works on a shard of articles and waits for models; `reduce` looks at the whole window and keeps each fact once.
Which writer writes, and what endpoint is behind it, is wired from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from engine.core.config import AskSection
from engine.core.errors import NestError
from engine.core.protocols import Blobs, ChatModel, Search
from engine.core.schema import Article, Check, Code, Question, Rejected, Stage, canonical_json
from engine.core.store import sha256_bytes
from engine.questions.checks import Context, check_text
from engine.questions.checks.people import private_person
from engine.questions.checks.source import locate, spelled_as_in
from engine.questions.checks.unique import reduce_questions
from engine.questions.draft import Draft, QuestionWriter
from engine.questions.index import NewsIndex
from engine.questions.text import fold, level

#: Raised when the same article and config would give other questions.
VERSION = "1"


@dataclass(frozen=True, slots=True)
class AskDeps:
    """The outside world of the stage.

    `index` holds all articles of the window (for roles that two publishers state); without it the shard's own are
    used. `blind` answers without the news. `max_in_flight` bounds the articles under way.
    """

    writer: QuestionWriter
    blobs: Blobs | None = None
    search: Search | None = None
    blind: ChatModel | None = None
    index: NewsIndex | None = None
    max_in_flight: int = 32


async def run(shard: Sequence[Article], config: AskSection, *, deps: AskDeps) -> list[Question | Rejected]:
    """Questions and losses of a shard, in the shard's order.

    Raises `TransientError`, `QuotaExhausted`, `BudgetSpent` or `ConfigError` of the model: what was under way is let
    finish first, so that its replies lie in the cache.
    """
    index = deps.index or NewsIndex(shard)
    results: list[list[Question | Rejected]] = [[] for _ in shard]
    todo: Iterator[int] = iter(range(len(shard)))
    stop: list[NestError] = []

    async def work() -> None:
        for place in todo:
            if stop:
                return
            try:
                results[place] = await ask_article(shard[place], config, deps=deps, index=index)
            except NestError as error:
                stop.append(error)

    await asyncio.gather(*(work() for _ in range(min(deps.max_in_flight, len(shard)))))
    if stop:
        raise stop[0]
    return [item for result in results for item in result]


def reduce(
    questions: Sequence[Question], config: AskSection, *, stories: Mapping[str, str] | None = None
) -> list[Question | Rejected]:
    """The window's questions, sorted by id, without doubles and ambiguous ones, at most so many per image.

    `stories` maps article ids to the stories that collect found; without it each article is a story of its own.
    """
    return reduce_questions(questions, config, stories=stories)


async def ask_article(
    article: Article, config: AskSection, *, deps: AskDeps, index: NewsIndex
) -> list[Question | Rejected]:
    """Write and check the questions of one article."""
    context = Context(article, index, config)
    found: list[Question | Rejected] = []
    for item in await deps.writer.write(article, config):
        found.append(item if isinstance(item, Rejected) else await _judge(item, context, deps))
    return found


async def _judge(draft: Draft, context: Context, deps: AskDeps) -> Question | Rejected:
    article = context.article
    identity = question_id(article, draft)
    passed, failed = check_text(draft, context)
    if failed is None and context.config.public_figures == "require":
        problem = await private_person(draft, context.index, deps.search)
        if problem is not None:
            failed = ("public_figure", Code.PRIVATE_PERSON, problem)
        else:
            passed.append("public_figure")
    if failed is not None:
        name, code, problem = failed
        # persons whom nobody may ask for are counted, not named
        detail = problem if code in (Code.PRIVATE_PERSON, Code.MINOR, Code.OPTED_OUT) else f"{name}: {problem}"
        return Rejected(
            item=identity, stage=Stage.ASK, code=code, detail=detail, parent=article.url, source=article.source
        )
    return _question(identity, draft, article, passed, deps.writer)


def question_id(article: Article, draft: Draft) -> str:
    """16 hex digits of what the question is: article, image, words and answer."""
    told = [article.id, draft.image.sha256, level(draft.question), fold(draft.answer)]
    return sha256_bytes(canonical_json(told).encode())[:16]


def _question(identity: str, draft: Draft, article: Article, passed: list[str], writer: QuestionWriter) -> Question:
    found = locate(draft.evidence, draft.image.caption, article.text)
    where, quoted = found or (draft.evidence_in, draft.evidence)
    return Question(
        id=identity,
        article_id=article.id,
        article_url=article.url,
        images=(draft.image.sha256,),
        question=level(draft.question),
        answer=spelled_as_in(draft.answer, draft.image.caption, article.text),
        aliases=draft.aliases,
        entity_type=draft.entity_type,
        kind=draft.kind,
        phrase=draft.phrase,
        position=draft.position,
        caption=draft.image.caption,
        entities=draft.entities,
        evidence=quoted,
        evidence_in="caption" if where == "caption" else "text",
        writer=writer.identity(),
        checks=tuple(Check(name=name, passed=True) for name in passed),
    )
