"""The checks that a draft must pass, each its own small function; the order here is the order they run in.

A check takes the draft and its context and returns why it fails, or None. The first that fails gives the code of the
`Rejected`; cheap ones come first, those that ask a search or a model last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.core.config import AskSection
from engine.core.schema import Article, Check, Code
from engine.questions.checks.answerable import question_ambiguous, question_unanswerable
from engine.questions.checks.form import answer_generic, question_malformed
from engine.questions.checks.leak import answer_in_question
from engine.questions.checks.people import minor, opted_out
from engine.questions.checks.pictured import entity_not_pictured
from engine.questions.checks.source import answer_not_in_source, evidence_not_in_source
from engine.questions.draft import Draft
from engine.questions.index import NewsIndex


@dataclass(frozen=True, slots=True)
class Context:
    """What a check may look at beside the draft."""

    article: Article
    index: NewsIndex
    config: AskSection


@dataclass(frozen=True, slots=True)
class Failure:
    """The check that failed, its code, and why."""

    check: str
    code: Code
    detail: str


TextCheck = Callable[[Draft, Article], str | None]

#: Checks that need the draft and its article only.
TEXT_CHECKS: tuple[tuple[str, Code, TextCheck], ...] = (
    ("form", Code.QUESTION_MALFORMED, question_malformed),
    ("generic", Code.ANSWER_GENERIC, answer_generic),
    ("answer_in_source", Code.ANSWER_NOT_IN_SOURCE, answer_not_in_source),
    ("one_entity", Code.QUESTION_AMBIGUOUS, question_ambiguous),
    ("evidence_in_source", Code.EVIDENCE_NOT_IN_SOURCE, evidence_not_in_source),
    ("leak", Code.ANSWER_IN_QUESTION, answer_in_question),
    ("pictured", Code.ENTITY_NOT_PICTURED, entity_not_pictured),
    ("answerable", Code.QUESTION_UNANSWERABLE, question_unanswerable),
)


def check_text(draft: Draft, context: Context) -> tuple[list[Check], Failure | None]:
    """The checks passed, and the first that failed."""
    passed: list[Check] = []
    for name, code, check in TEXT_CHECKS:
        if (problem := check(draft, context.article)) is not None:
            return passed, Failure(name, code, problem)
        passed.append(Check(name=name, passed=True))
    people = (
        ("opt_out", Code.OPTED_OUT, opted_out(draft, context.config)),
        ("minor", Code.MINOR, minor(draft, context.index)),
    )
    for name, code, problem in people:
        if problem is not None:
            return passed, Failure(name, code, problem)
        passed.append(Check(name=name, passed=True))
    return passed, None
