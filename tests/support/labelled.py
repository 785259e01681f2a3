"""The labelled question set: pairs by hand from tests/data/questions, and bad ones made by rule.

A rule takes a good pair and breaks it in one known way; each rule is applied to every good pair it fits, up to a
number per rule, so that no kind outweighs the others.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.core.schema import Article
from engine.questions.aliases import aliases_of
from engine.questions.captions import read_caption
from engine.questions.draft import Draft
from engine.questions.index import NewsIndex
from engine.questions.text import fold
from support.articles import article

FOLDER = Path(__file__).parents[1] / "data" / "questions"
#: The set that the rules were made on; one written before their last change, whose mistakes were seen; one written
#: after it, measured as it was written.
GUARD, HELD_OUT, UNSEEN = "labelled", "held_out", "unseen"
PER_RULE = 6


@dataclass(frozen=True)
class Pair:
    """A draft, its article, and the code that it must be lost by; "ok" if it must be kept."""

    article: Article
    draft: Draft
    label: str
    made: str = "by hand"
    opt_out: tuple[str, ...] = field(default=())
    alone: bool = False
    part: str = GUARD

    def index(self) -> NewsIndex:
        """The window that the pair is judged in: all articles of its set, or (`alone`) only its own."""
        if self.alone:
            return NewsIndex([self.article])
        others = [story for story in window(self.part) if story.id != self.article.id]
        return _index(self.part) if self.article in window(self.part) else NewsIndex([self.article, *others])


def window(part: str = GUARD) -> list[Article]:
    """All articles of a set."""
    return list(_articles(part).values())


def pairs(part: str = GUARD) -> list[Pair]:
    """Every labelled pair of a set, hand-made ones first."""
    stories = _articles(part)
    by_hand = [replace(_pair(raw, stories[raw["article"]]), part=part) for raw in _read(part)["pair"]]
    good = [pair for pair in by_hand if pair.label == "ok"]
    made: list[Pair] = []
    for rule in RULES:
        broken = [found for pair in good if (found := rule(pair, stories)) is not None]
        step = max(1, len(broken) // PER_RULE)
        made += broken[::step][:PER_RULE]
    return [*by_hand, *made, *(_reworded(pair) for pair in good)]


@functools.cache
def _read(part: str) -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads((FOLDER / f"{part}.toml").read_text(encoding="utf-8"))


@functools.cache
def _index(part: str) -> NewsIndex:
    return NewsIndex(window(part))


@functools.cache
def _articles(part: str) -> dict[str, Article]:
    return {
        item["key"]: article(item["text"], *item["captions"], title=item["title"], publisher=item["publisher"])
        for item in _read(part)["article"]
    }


def _pair(raw: dict[str, Any], story: Article) -> Pair:
    kind = str(raw.get("type", "person"))
    caption = story.images[0].caption
    entities = read_caption(caption, text=story.text)
    answer = str(raw["answer"])
    draft = Draft(
        image=story.images[0],
        question=str(raw["question"]),
        answer=answer,
        entity_type="product" if kind == "product" else "person",
        phrase=str(raw.get("phrase", "person")),
        evidence=str(raw["evidence"]),
        entities=entities,
        aliases=tuple(raw.get("aliases", ()))
        or aliases_of(answer, "product" if kind == "product" else "person", story.text, others=entities),
    )
    return Pair(story, draft, str(raw.get("label", "ok")), opt_out=tuple(raw.get("opt_out", ())))


def _reworded(pair: Pair) -> Pair:
    """The same good pair in other words: "In this picture, ...", and the quotation in quotes with a blank too many."""
    question = re.sub(
        r"^(?:Which|Who|Whose)\b", lambda found: f"In this picture, {found[0].lower()}", pair.draft.question
    )
    evidence = (
        f"\u201c{pair.draft.evidence.replace(' ', '  ', 1)}\u201d"
        if '"' not in pair.draft.evidence
        else pair.draft.evidence
    )
    return replace(pair, draft=replace(pair.draft, question=question, evidence=evidence), made="reworded")


# ---------------------------------------------------------------- rules


def _changed(pair: Pair, label: str, made: str, **change: object) -> Pair:
    return replace(pair, draft=replace(pair.draft, **change), label=label, made=made)  # type: ignore[arg-type]


def _tail(pair: Pair, words: str) -> str:
    return f"{pair.draft.question.rstrip('?')}{words}?"


def surname_in_question(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(pair, "answer_in_question", "surname", question=_tail(pair, f", {pair.draft.answer.split()[-1]}"))


def possessive_in_question(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(
        pair,
        "answer_in_question",
        "possessive",
        question=_tail(pair, f" to {pair.draft.answer.split()[-1]}’s surprise"),
    )


def first_part_in_question(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    first = pair.draft.answer.split()[0]
    if len(first) < 3:
        return None
    return _changed(pair, "answer_in_question", "first part", question=_tail(pair, f", one {first} by name"))


def shouted_in_question(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(
        pair,
        "answer_in_question",
        "plain capitals",
        question=_tail(pair, f", known as {fold(pair.draft.answer).upper()}"),
    )


def other_evidence(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    other = next(story for story in stories.values() if story.id != pair.article.id)
    return _changed(pair, "evidence_not_in_source", "evidence of another article", evidence=other.text.split(". ")[0])


def dropped_word(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    words = pair.draft.evidence.split()
    if len(words) < 8:
        return None
    return _changed(pair, "evidence_not_in_source", "a word left out", evidence=" ".join(words[:4] + words[5:]))


def changed_number(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    changed = re.sub(r"\d+", lambda found: str(int(found[0]) + 1), pair.draft.evidence, count=1)
    if changed == pair.draft.evidence:
        return None
    return _changed(pair, "evidence_not_in_source", "a number changed", evidence=changed)


def invented_answer(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(pair, "answer_not_in_source", "invented name", answer="Quentin Vasarely", aliases=("Vasarely",))


def generic_answer(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    answer = "the woman" if pair.draft.entity_type == "person" else "smartphone"
    return _changed(pair, "answer_generic", "no name", answer=answer, aliases=())


def no_question(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(pair, "question_malformed", "a statement", question=pair.draft.question.rstrip("?") + ".")


def asks_for_time(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(
        pair, "question_malformed", "asks when", question="When did this happen to the person in the image?"
    )


def speaks_of_the_article(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return _changed(pair, "question_malformed", "names the article", question=_tail(pair, ", according to the article"))


def says_where(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    noun = pair.draft.phrase
    return _changed(
        pair, "question_unanswerable", "place in the picture", question=f"Which {noun} in the image is on the left?"
    )


def caption_without(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    image = pair.draft.image.model_copy(update={"caption": "A view of the harbour on Wednesday morning."})
    return _changed(pair, "entity_not_pictured", "caption names nobody", image=image)


def _retold(pair: Pair, text: str) -> Article:
    return pair.article.model_copy(update={"text": text})


def _with_age(pair: Pair, age: int) -> Article | None:
    name = pair.draft.answer
    if pair.draft.entity_type != "person" or name not in pair.article.text:
        return None
    return _retold(pair, pair.article.text + f" In the evening {name}, {age}, went home by bus.")


def is_a_child(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    story = _with_age(pair, 14)
    return story and replace(pair, article=story, label="minor", made="age 14")


def is_of_age(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    story = _with_age(pair, 41)
    return story and replace(pair, article=story, made="age 41")


def nobody_else_knows(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    if pair.draft.entity_type != "person":
        return None
    return replace(pair, alone=True, label="private_person", made="one publisher only")


def asked_not_to_be(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    return replace(pair, opt_out=(pair.draft.answer.upper(),), label="opted_out", made="on the list")


def done_by_both(pair: Pair, stories: dict[str, Article]) -> Pair | None:
    others = [item.name for item in pair.draft.entities if item.type == pair.draft.entity_type]
    others = [name for name in others if fold(name) != fold(pair.draft.answer)]
    if not others:
        return None
    sentence = f"{others[0]} and {pair.draft.answer} were honoured in Lowmoor in 1998."
    broken = _changed(
        pair,
        "question_ambiguous",
        "said of two",
        question=f"Which {pair.draft.phrase} in the image was honoured in Lowmoor in 1998?",
        evidence=sentence,
    )
    return replace(broken, article=_retold(pair, f"{pair.article.text} {sentence}"))


RULES: tuple[Callable[[Pair, dict[str, Article]], Pair | None], ...] = (
    surname_in_question,
    possessive_in_question,
    first_part_in_question,
    shouted_in_question,
    other_evidence,
    dropped_word,
    changed_number,
    invented_answer,
    generic_answer,
    no_question,
    asks_for_time,
    speaks_of_the_article,
    says_where,
    caption_without,
    is_a_child,
    is_of_age,
    nobody_else_knows,
    asked_not_to_be,
    done_by_both,
)
