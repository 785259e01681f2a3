"""Each fact once: within an image, within a story, and no question that fits two entities. For a whole window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from engine.core.config import AskSection
from engine.core.schema import Code, Question, Rejected, Stage
from engine.questions.text import atoms, fold

#: Questions for one entity that share this much of their words ask for the same fact.
SAME_FACT = 0.6
_FRAME = frozenset(("which", "what", "who", "person", "in", "the", "image", "picture", "photo", "is", "a", "an", "of"))


def reduce_questions(
    questions: Sequence[Question], config: AskSection, *, stories: Mapping[str, str] | None = None
) -> list[Question | Rejected]:
    """Sorted by id; `stories` maps article ids to stories, without it an article is its own.

    Two answers to one question in a picture or a story cost both; of doubles the first stays.
    """
    ordered = sorted(questions, key=lambda item: (item.images, _order(item), item.id))
    lost: list[Rejected] = []
    ambiguous = _ambiguous(ordered, stories or {})
    kept: list[Question] = []
    for item in ordered:
        twin = next((other for other in kept if _same(item, other, stories or {})), None)
        if item.id in ambiguous:
            lost.append(_rejected(item, Code.QUESTION_AMBIGUOUS, "the same question has another answer here"))
        elif twin is not None:
            lost.append(_rejected(item, Code.QUESTION_DUPLICATE, f"asks for what {twin.id} asks"))
        else:
            kept.append(item)
    final: list[Question | Rejected] = []
    for group in _by_image(kept):
        chosen = _spread(group)[: config.max_questions_per_image]
        final += chosen
        limit = f"the image has {config.max_questions_per_image} questions already"
        lost += [_rejected(item, Code.LIMIT, limit) for item in group if item not in chosen]
    return sorted([*final, *lost], key=lambda item: item.id if isinstance(item, Question) else item.item)


def facts_overlap(first: str, second: str) -> float:
    """Shared words of two questions without their frame, as Jaccard similarity."""
    one, two = set(atoms(first)) - _FRAME, set(atoms(second)) - _FRAME
    return len(one & two) / len(one | two) if one | two else 1.0


def _same(first: Question, second: Question, stories: Mapping[str, str]) -> bool:
    """Whether both ask for one fact of one entity in one image or one story.

    The same question over another picture of another story stays: it is another row of the benchmark.
    """
    if fold(first.answer) != fold(second.answer):
        return False
    if first.images != second.images and _story(first, stories) != _story(second, stories):
        return False
    same = fold(first.question) == fold(second.question) or fold(first.evidence) == fold(second.evidence)
    return same or facts_overlap(first.question, second.question) >= SAME_FACT


def _story(item: Question, stories: Mapping[str, str]) -> str:
    return stories.get(item.article_id) or item.article_id


def _ambiguous(questions: Iterable[Question], stories: Mapping[str, str]) -> set[str]:
    groups: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for item in questions:
        asked = " ".join(atoms(item.question))
        for place in {_story(item, stories), *item.images}:
            groups[place, asked].append(item)
    return {item.id for group in groups.values() if len({fold(item.answer) for item in group}) > 1 for item in group}


def _by_image(questions: Iterable[Question]) -> list[list[Question]]:
    groups: dict[tuple[str, ...], list[Question]] = defaultdict(list)
    for item in questions:
        groups[item.images].append(item)
    return [groups[key] for key in sorted(groups)]


def _spread(questions: list[Question]) -> list[Question]:
    """One question per entity before a second one for any."""
    seen: dict[str, int] = defaultdict(int)
    ranked = []
    for item in questions:
        ranked.append((seen[fold(item.answer)], item))
        seen[fold(item.answer)] += 1
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]


def _order(item: Question) -> int:
    return next((entity.order for entity in item.entities if fold(entity.name) == fold(item.answer)), 99)


def _rejected(item: Question, code: Code, detail: str) -> Rejected:
    return Rejected(item=item.id, stage=Stage.ASK, code=code, detail=detail, parent=item.article_url)
