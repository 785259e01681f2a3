"""The ask stage: articles in, checked questions out, every loss a `Rejected` with its code.

`run` works on a shard of articles and waits for models; `reduce` looks at the whole window and keeps each fact once.
Which writer writes, and what endpoint is behind it, is wired from outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.core.config import AskSection
from engine.core.errors import ConfigError, NestError
from engine.core.protocols import Blobs
from engine.core.schema import Article, BlindAnswer, Check, Code, Question, Rejected, Stage, canonical_json
from engine.core.store import sha256_bytes
from engine.core.together import together
from engine.questions.checks import Context, Failure, check_text
from engine.questions.checks.known import Blind, blind_answers, known_blind
from engine.questions.checks.people import private_person
from engine.questions.checks.readable import PictureReader, answer_readable
from engine.questions.checks.source import locate, spelled_as_in
from engine.questions.checks.unique import reduce_questions
from engine.questions.draft import Draft, QuestionWriter
from engine.questions.encyclopedia import Encyclopedia
from engine.questions.index import NewsIndex
from engine.questions.text import fold, level

#: Raised when the same article and config would give other questions.
VERSION = "2"


@dataclass(frozen=True, slots=True)
class AskDeps:
    """The outside world of the stage.

    `index` holds all articles of the window (for roles that two publishers state); without it the shard's own are
    used. `encyclopedia` is asked for persons whom the window does not show to be public. `blind` answers without the
    news, `reader` reads pictures' lettering; each is needed where the config asks for it. `max_in_flight` bounds the
    articles under way.
    """

    writer: QuestionWriter
    blobs: Blobs | None = None
    encyclopedia: Encyclopedia | None = None
    blind: Blind | None = None
    reader: PictureReader | None = None
    index: NewsIndex | None = None
    max_in_flight: int = 32


async def run(
    shard: Sequence[Article], config: AskSection, *, deps: AskDeps, stop: list[NestError] | None = None
) -> list[Question | Rejected]:
    """Questions and losses of a shard, in the shard's order.

    Raises `TransientError`, `QuotaExhausted`, `BudgetSpent` or `ConfigError` of the model: what was under way is let
    finish first, so that its replies lie in the cache. `stop` is shared by shards that run side by side: what ends one
    keeps the others from beginning anything new.
    """
    if config.blind_model and deps.blind is None:
        raise ConfigError(f"[ask] blind_model is '{config.blind_model}' and no such chat model was given")
    if config.read_images and deps.reader is None:
        raise ConfigError("[ask] read_images needs a chat model that sees images: set [llm] model and sees_images")
    index = deps.index or NewsIndex(shard)
    results: list[list[Question | Rejected]] = [[] for _ in shard]
    todo: Iterator[int] = iter(range(len(shard)))
    stopped: list[NestError] = [] if stop is None else stop
    left: list[int] = []

    async def work() -> None:
        for place in todo:
            if stopped:
                left.append(place)
                return
            try:
                results[place] = await ask_article(shard[place], config, deps=deps, index=index)
            except NestError as error:
                stopped.append(error)
                left.append(place)

    await asyncio.gather(*(work() for _ in range(min(deps.max_in_flight, len(shard)))))
    if left:
        raise stopped[0]
    return [item for result in results for item in result]


async def run_shards(
    shards: Iterable[tuple[int, Sequence[Article]]],
    config: AskSection,
    *,
    deps: AskDeps,
    done: Callable[[int, list[Question | Rejected]], None],
) -> None:
    """Numbered shards; `done` is called with the number and the results of each as it is finished.

    Two run at a time: while the last replies of one are waited for, the next keeps the model busy. Raises like `run`,
    after the shards that were finished have been handed over.
    """
    todo = iter(shards)
    stop: list[NestError] = []

    async def work() -> None:
        for number, shard in todo:
            if stop:
                return
            try:
                found = await run(shard, config, deps=deps, stop=stop)
            except NestError as error:
                # shards side by side raise the same one
                stop.append(error)
                return
            done(number, found)

    await asyncio.gather(work(), work())
    if stop:
        raise stop[0]


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
    """Write and check the questions of one article; of the same question twice only the first is looked at."""
    context = Context(article, index, config)
    found: list[Question | Rejected] = []
    drafts: dict[str, Draft] = {}
    for item in await deps.writer.write(article, config):
        if isinstance(item, Rejected):
            found.append(item)
            continue
        draft = settled(item, article)
        identity = question_id(article, draft)
        if identity in drafts:
            twice = Failure("unique", Code.QUESTION_DUPLICATE, "the same question was written twice")
            found.append(_rejected(identity, article, twice))
        drafts.setdefault(identity, draft)
    judged = await together(_judge(identity, draft, context, deps) for identity, draft in drafts.items())
    return [*found, *judged]


async def _judge(identity: str, draft: Draft, context: Context, deps: AskDeps) -> Question | Rejected:
    """The checks in order; the first that fails ends it, so that what costs money is asked of good drafts only."""
    article, config = context.article, context.config
    passed, failed = check_text(draft, context)
    blind: tuple[BlindAnswer, ...] = ()
    if failed is None and config.public_figures == "require":
        problem = await private_person(draft, context.index, deps.encyclopedia)
        failed = _noted("public_figure", Code.PRIVATE_PERSON, problem, passed)
    if failed is None and config.read_images and deps.reader is not None:
        texts = await deps.reader.read(draft.image)
        problem = answer_readable(draft, texts) if texts is not None else None
        told = "" if texts is not None else "the picture could not be read"
        failed = _noted("readable", Code.ANSWER_READABLE_IN_IMAGE, problem, passed, told)
    if failed is None and config.blind_model and deps.blind is not None:
        blind, told = await blind_answers(draft, deps.blind)
        problem = known_blind(blind) if config.reject_known else None
        failed = _noted("blind", Code.KNOWN_BLIND, problem, passed, told)
    if failed is not None:
        return _rejected(identity, article, failed)
    return _question(identity, draft, article, passed, deps.writer, blind)


def _noted(name: str, code: Code, problem: str | None, passed: list[Check], detail: str = "") -> Failure | None:
    if problem is not None:
        return Failure(name, code, problem)
    passed.append(Check(name=name, passed=True, detail=detail))
    return None


def _rejected(identity: str, article: Article, failed: Failure) -> Rejected:
    # persons whom nobody may ask for are counted, not named
    hushed = failed.code in (Code.PRIVATE_PERSON, Code.MINOR, Code.OPTED_OUT)
    detail = failed.detail if hushed else f"{failed.check}: {failed.detail}"
    return Rejected(
        item=identity, stage=Stage.ASK, code=failed.code, detail=detail, parent=article.url, source=article.source
    )


def settled(draft: Draft, article: Article) -> Draft:
    """The draft with its answer as the article writes it; a surname alone becomes the pictured person's full name."""
    answer = spelled_as_in(draft.answer, draft.image.caption, article.text)
    if draft.entity_type == "person" and " " not in answer:
        full = [entity.name for entity in draft.entities if fold(entity.name.split()[-1]) == fold(answer)]
        answer = full[0] if len(full) == 1 else answer
    return replace(draft, answer=answer)


def question_id(article: Article, draft: Draft) -> str:
    """16 hex digits of what the question is: article, image, words and answer."""
    told = [article.id, draft.image.sha256, level(draft.question), fold(draft.answer)]
    return sha256_bytes(canonical_json(told).encode())[:16]


def _question(
    identity: str,
    draft: Draft,
    article: Article,
    passed: list[Check],
    writer: QuestionWriter,
    blind: tuple[BlindAnswer, ...],
) -> Question:
    found = locate(draft.evidence, draft.image.caption, article.text)
    where, quoted = found or (draft.evidence_in, draft.evidence)
    return Question(
        id=identity,
        article_id=article.id,
        article_url=article.url,
        images=(draft.image.sha256,),
        question=level(draft.question),
        answer=draft.answer,
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
        checks=tuple(passed),
        blind=blind,
    )
