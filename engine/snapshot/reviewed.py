"""From verdicts to the next revision: which rows a review draws, what is corrected, what a rebuild leaves out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.schema import Annotation, Article, Question, SnapshotManifest, canonical_json
from engine.snapshot.amend import Change
from engine.snapshot.names import PROVENANCE
from engine.snapshot.verdicts import WRONG, Verdict, by_row, decided, latest_digest


@dataclass(frozen=True, slots=True)
class Drawn:
    """Ids of the rows to look at, in the order in which they are shown."""

    random: tuple[str, ...]
    lowest_margins: tuple[str, ...]


def draw(folder: Path, manifest: SnapshotManifest, *, random_rows: int, lowest_margins: int) -> Drawn:
    """Two strata of a snapshot's rows.

    The random one is the first rows in the order of sha256(digest of the snapshot, id): the same for everybody, and
    nobody could choose it. The other has the rows with the least margin of all their bindings among the rest; rows
    whose image had a single candidate have margin 1 and come last.
    """
    import pyarrow.parquet as pq

    margins: dict[str, float] = {}
    for path in sorted((folder / PROVENANCE).glob("*.parquet")):
        for row in pq.read_table(path, columns=["id", "bindings"]).to_pylist():
            margins[row["id"]] = min((binding["margin"] for binding in row["bindings"]), default=1.0)
    order = sorted(margins, key=lambda name: hashlib.sha256(f"{manifest.digest}/{name}".encode()).digest())
    chosen = order[:random_rows]
    rest = sorted(order[random_rows:], key=lambda name: (margins[name], name))
    return Drawn(tuple(chosen), tuple(rest[:lowest_margins]))


def masks_digest(bindings: Sequence[Mapping[str, Any]], gates: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """16 hex digits of how a row's masks were bound and what the gates measured: a mask that was made anew or put in
    by hand has another one, a picture that was only made smaller has not."""
    return hashlib.sha256(canonical_json([list(bindings), [list(row) for row in gates]]).encode()).hexdigest()[:16]


def changes_of(by_reviewer: Mapping[str, Sequence[Verdict]], *, digest: str) -> list[Change]:
    """Corrections of one revision: a wrong answer is replaced where the reviewers name one and the same right name,
    every other wrong row is left out."""
    found = []
    for row, verdicts in sorted(by_row(by_reviewer, digest).items()):
        kind = decided(verdicts)
        if kind not in WRONG:
            continue
        because = f"review: {kind.replace('_', ' ')}"
        names = {v.answer for v in verdicts if v.verdict == "wrong_answer" and v.answer}
        if kind == "wrong_answer" and len(names) == 1:
            found.append(Change(row, because, answer=names.pop()))
        else:
            found.append(Change(row, because, drop=True))
    return found


def wrong_rows(
    by_reviewer: Mapping[str, Sequence[Verdict]],
    articles: Sequence[Article],
    questions: Sequence[Question],
    annotations: Sequence[Annotation],
    *,
    answered: Collection[str] = (),
) -> dict[str, str]:
    """Ids of rows, with the reason, that a review found wrong and that a rebuild would publish again.

    A wrong answer and a private person stay wrong whatever is built; a bad mask and a wrong entity are forgiven where
    the masks are other ones now, a wrong answer where the row is among `answered`, those that were given the right one.
    Verdicts of all revisions count, the latest revision's first.
    """
    from engine.snapshot.samples import sample_id

    words: dict[str, tuple[str, set[str]]] = {}
    digests = dict.fromkeys(v.digest for verdicts in by_reviewer.values() for v in verdicts)
    ordered = [latest_digest(by_reviewer), *digests]
    for digest in dict.fromkeys(name for name in ordered if name):
        for row, verdicts in by_row(by_reviewer, digest).items():
            words.setdefault(row, (decided(verdicts), {verdict.masks for verdict in verdicts}))
    if not any(kind in WRONG for kind, _ in words.values()):
        return {}
    by_article, by_question = {a.id: a for a in articles}, {q.id: q for q in questions}
    found = {}
    for annotation in annotations:
        question = by_question.get(annotation.question_id)
        article = by_article.get(question.article_id) if question else None
        if question is None or article is None:
            continue
        name = sample_id(article, question)
        kind, masks = words.get(name, ("right", set()))
        if kind not in WRONG:
            continue
        own = masks_digest(
            [image.binding.model_dump(mode="json") for image in annotation.images],
            [[gate.model_dump(mode="json") for gate in image.gates] for image in annotation.images],
        )
        if kind in ("bad_mask", "wrong_entity") and own not in masks:
            continue
        if kind == "wrong_answer" and name in answered:
            continue
        found[name] = f"review: {kind.replace('_', ' ')}"
    return found
