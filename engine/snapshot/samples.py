"""Articles, questions and annotations become samples: the join that opens the snapshot stage.

Only questions that were annotated come here; the others were counted where they were lost. What is left out
here is what must not be published: opted-out names and places, rows taken down, rows reviewed as wrong, and
records that do not fit each other. Nothing is opened or written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from engine.core.schema import Annotation, Article, Code, Question, Rejected, Sample, Stage, canonical_json
from engine.snapshot.optout import OptOut


def sample_id(article: Article, question: Question) -> str:
    """16 hex digits from what the row says: canonical URL, image digests, question and answer.

    The same news gives the same id, whoever asked, in whatever order and whenever.
    """
    told = [article.canonical_url or article.url, list(question.images), question.question, question.answer]
    return hashlib.sha256(canonical_json(told).encode()).hexdigest()[:16]


def join(
    articles: Sequence[Article],
    questions: Sequence[Question],
    annotations: Sequence[Annotation],
    *,
    opt_out: OptOut | None = None,
    wrong: Mapping[str, str] | Collection[str] = (),
) -> list[Sample | Rejected]:
    """Samples sorted by id, and the annotations that became none, with a code.

    `opt_out` names people, publishers and pictures that are never published (`OPTED_OUT`) and rows that were
    taken down (`TAKEN_DOWN`). `wrong` holds ids of rows that a review found wrong, with the reason if it is a
    mapping (`REVIEWED_WRONG`). An annotation whose question, article or images are not among the inputs is
    `INTERNAL`. Of two annotations that give one row the first by annotation id stays (`QUESTION_DUPLICATE`).
    """
    by_article = {article.id: article for article in articles}
    by_question = {question.id: question for question in questions}
    found: dict[str, Sample] = {}
    rejected: list[Rejected] = []
    for annotation in sorted(annotations, key=lambda item: item.id):
        question = by_question.get(annotation.question_id)
        article = by_article.get(question.article_id) if question else None
        if question is None or article is None:
            missing = "question" if question is None else "article"
            rejected.append(_reject(annotation.id, Code.INTERNAL, f"its {missing} is not among the inputs"))
            continue
        name = sample_id(article, question)
        url = article.canonical_url or article.url
        images = {image.sha256: image for image in article.images}
        if problem := _misfit(question, annotation, images):
            rejected.append(_reject(name, Code.INTERNAL, problem, parent=url))
            continue
        sample = Sample(
            id=name,
            article=article,
            images=tuple(images[digest] for digest in question.images),
            question=question,
            annotation=annotation,
        )
        if code := opt_out.refuses(sample) if opt_out else None:
            # the reason is not repeated here: a list of rejects must not become a list of the names that opted out
            rejected.append(_reject(name, code, "on the opt-out list"))
        elif name in wrong:
            reason = wrong[name] if isinstance(wrong, Mapping) else ""
            rejected.append(_reject(name, Code.REVIEWED_WRONG, reason, parent=url))
        elif name in found:
            rejected.append(_reject(annotation.id, Code.QUESTION_DUPLICATE, f"gives the row {name} again", parent=url))
        else:
            found[name] = sample
    ordered: list[Sample | Rejected] = [found[name] for name in sorted(found)]
    return ordered + sorted(rejected, key=lambda item: (item.item, item.code.value))


def _misfit(question: Question, annotation: Annotation, images: Mapping[str, object]) -> str:
    if not question.images:
        return "the question has no image"
    if missing := [digest for digest in question.images if digest not in images]:
        return f"image {missing[0][:12]} is not one of the article's"
    if tuple(item.image for item in annotation.images) != question.images:
        return "the annotation is of other images than the question"
    return ""


def _reject(item: str, code: Code, detail: str, *, parent: str = "") -> Rejected:
    return Rejected(item=item, stage=Stage.SNAPSHOT, code=code, detail=detail, parent=parent)
