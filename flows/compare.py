"""Two configurations side by side on one window: what a new writer, annotator or prompt changes.

Both run through the same stages; since every stage's folder is named by what it was made from, neither disturbs the
other, and what they share is done once. The second one's snapshot and scores lie under `<home>/compare/`, never under
the window's own name. The shift is kept in `<home>/shifts/`, and the leaderboard shows it: a series goes on over a
change only if one knows by how much the change alone moves the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import ConfigError
from engine.core.schema import Annotation, Article, Estimate, FunnelStep, Question, Rejected, Sample
from engine.core.store import committed_directory, sha256_file, write_atomic
from flows.run import Run
from flows.shifts import SHIFTS, ScoreShift, Shift, points
from flows.stages import annotate, ask, collect, snapshot
from flows.stages.base import split

if TYPE_CHECKING:
    from engine.core.schema import ScoreReport
    from flows.stages.score import Task

#: Two masks of one entity that overlap at least so much are of the same thing.
SAME_IOU = 0.5


@dataclass(frozen=True, slots=True)
class Made:
    """What one configuration made of the window."""

    run: Run
    questions: list[Question]
    annotations: list[Annotation]
    lost: dict[str, int]
    funnel: list[FunnelStep] = field(default_factory=list)

    def pairs(self) -> dict[tuple[str, str], Any]:
        """Mask by (picture, answer): the same entity of the same picture, whoever asked and in whatever words."""
        answers = {question.id: question.answer for question in self.questions}
        return {
            (image.image, answers[found.question_id].casefold()): image
            for found in self.annotations
            for image in found.images
            if found.question_id in answers
        }


def compare(first: Run, second: Run, *, scored: bool = True) -> Shift:
    """Run both, compare, and keep the shift. Raises `ConfigError` if the two give the same or have different homes."""
    if first.home.root != second.home.root:
        raise ConfigError(
            f"the two configurations have different homes ({first.home.root}, {second.home.root}): give them the same, "
            "or what they share is fetched and paid twice"
        )
    one, other = make(first), make(second)
    if _keys(first) == _keys(second):
        raise ConfigError("the two configurations give the same questions and masks: nothing is to be compared")
    shift = Shift(
        window=first.window.label,
        first=_keys(first),
        second=_keys(second),
        changes=tuple(changes(first, second)),
        yields=_yields(one, other),
        agreement=agreement(one, other),
        scores=tuple(_scores(one, other)) if scored else (),
    )
    path = first.home.root / SHIFTS / f"{shift.window}-{shift.first}-{shift.second}.json"
    write_atomic(path, (shift.line() + "\n").encode())
    return shift


def make(run: Run) -> Made:
    """Collect, ask and annotate, as far as that is not done, and read what came out."""
    collect.do(run)
    ask.do(run)
    annotate.do(run)
    questions, masks = ask.place(run), annotate.place(run)
    assert questions is not None
    assert masks is not None
    steps = snapshot.funnel(run)
    lost: dict[str, int] = {}
    for step in steps:
        for code, count in step.rejected.items():
            lost[code] = lost.get(code, 0) + count
    return Made(run, questions.read(Question), masks.read(Annotation), lost, steps)


def changes(first: Run, second: Run) -> Iterator[str]:
    """The settings in which two configurations differ and that change results, as "section.key: old -> new"."""
    for name in ("collect", "ask", "llm", "annotate", "rose", "score"):
        old, new = (getattr(run.config, name).keyed() for run in (first, second))
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield f"{name}.{key}: {_short(old.get(key))} -> {_short(new.get(key))}"


def agreement(one: Made, other: Made) -> dict[str, float | int | None]:
    """How far two sets of masks agree: pairs of (picture, answer) that both have, and the overlap of their masks."""
    from engine.core.geometry import mask_iou
    from engine.core.masks import decode_rle

    left, right = one.pairs(), other.pairs()
    shared = sorted(left.keys() & right.keys())
    ious = [
        mask_iou(decode_rle(left[pair].rle), decode_rle(right[pair].rle))
        for pair in shared
        if left[pair].rle.size == right[pair].rle.size
    ]
    asked = [{(q.images, q.answer.casefold()) for q in made.questions} for made in (one, other)]
    return {
        "questions_both": len(asked[0] & asked[1]),
        "questions_first_only": len(asked[0] - asked[1]),
        "questions_second_only": len(asked[1] - asked[0]),
        "masks_both": len(shared),
        "masks_first_only": len(left) - len(shared),
        "masks_second_only": len(right) - len(shared),
        "same_entity": sum(iou >= SAME_IOU for iou in ious) / len(ious) if ious else None,
        "mean_iou": sum(ious) / len(ious) if ious else None,
    }


def _keys(run: Run) -> str:
    questions, masks = ask.place(run), annotate.place(run)
    assert questions is not None
    return f"{questions.path.name[:8]}{masks.path.name[:8] if masks else ''}"


def _yields(one: Made, other: Made) -> dict[str, tuple[int, int]]:
    told = {
        "questions": (len(one.questions), len(other.questions)),
        "masks": (len(one.annotations), len(other.annotations)),
    }
    for code in sorted(one.lost.keys() | other.lost.keys()):
        pair = one.lost.get(code, 0), other.lost.get(code, 0)
        if pair[0] != pair[1]:
            told[code] = pair
    return told


def _scores(one: Made, other: Made) -> Iterator[ScoreShift]:
    """Segmenters that both configurations name, each scored on both sets of rows."""
    from flows.stages import reports, score

    names = [name for name in one.run.config.score.segmenters if name in other.run.config.score.segmenters]
    if not names:
        return
    found: list[ScoreReport | None] = []
    for made in (one, other):
        task = _task(made)
        score.do_task(task)
        found.append(reports.read_report(score.place(task)))
    first, second = found
    if first is None or second is None:
        return
    for name in names:
        label = score.label_of(name)
        a, b = (_giou(report, label) for report in (first, second))
        yield ScoreShift(segmenter=label, first=a, second=b, difference=_difference(a, b))


def _task(made: Made) -> Task:
    """The rows of a configuration as something to score: the window's own snapshot if it is that, else one beside."""
    from flows.stages.score import Task, task_of

    own = task_of(made.run)
    if own is not None:
        return own
    folder = _beside(made)

    def load() -> Any:
        from inference.benchmarks.nest import load

        return load(folder, cutoff_lag_days=made.run.config.score.cutoff_lag_days)

    name = f"compare.{made.run.snapshot_name}.{_keys(made.run)}"
    return Task(name, sha256_file(folder / "snapshot.json"), load, made.run.config, made.run.home, made.run)


def _beside(made: Made) -> Path:
    """The configuration's snapshot, built under `compare/` unless it is there."""
    from engine.snapshot.build import build
    from engine.snapshot.optout import read_optout
    from engine.snapshot.samples import join

    run = made.run
    folder = run.home.root / "compare" / _keys(run) / run.snapshot_name
    if (folder / "snapshot.json").is_file():
        return folder
    joined = join(
        collect.place(run).read(Article),
        made.questions,
        made.annotations,
        opt_out=read_optout(run.home.root, names=run.config.ask.opt_out),
    )
    samples, dropped = split(joined, Sample)
    key = snapshot.key(run)
    assert key is not None
    with committed_directory(folder) as temporary:
        build(
            temporary,
            samples,
            window=run.window,
            config=run.config.snapshot,
            hub_repo="",
            blobs=run.home.blobs,
            key=key,
            funnel=made.funnel,
            rejected=[lost for lost in dropped if isinstance(lost, Rejected)],
        )
    return folder


def _giou(report: ScoreReport, label: str) -> Estimate:
    try:
        return report.row(label).figures.get("giou") or Estimate(value=None)
    except KeyError:
        return Estimate(value=None)


def _difference(first: Estimate, second: Estimate) -> Estimate:
    if first.value is None or second.value is None:
        return Estimate(value=None)
    off = second.value - first.value
    if first.low is None or first.high is None or second.low is None or second.high is None:
        return Estimate(value=off)
    # distances of the bounds from the values, added as those of independent figures
    down = ((second.value - second.low) ** 2 + (first.high - first.value) ** 2) ** 0.5
    up = ((second.high - second.value) ** 2 + (first.value - first.low) ** 2) ** 0.5
    return Estimate(value=off, low=off - down, high=off + up)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def table(shift: Shift) -> list[list[str]]:
    """The comparison as rows for the terminal: label, first, second, change."""
    rows = [["", "first", "second", "change"]]
    rows += [[name, str(a), str(b), f"{b - a:+d}"] for name, (a, b) in shift.yields.items()]
    for one in shift.scores:
        values = ["-" if e.value is None else f"{100 * e.value:.1f}" for e in (one.first, one.second)]
        off = "-" if one.difference.value is None else points(one.difference)
        rows.append([f"gIoU {one.segmenter}", *values, off])
    return rows


def plain(shift: Shift) -> Mapping[str, Any]:
    """The shift as JSON values."""
    return {**shift.model_dump(mode="json"), "sentence": shift.sentence()}
