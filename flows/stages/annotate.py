"""Annotate: the mask of each question's entity, by shards of images that several workers may share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import RefusedError, TerminalError, TransientError
from engine.core.schema import Annotation, Question
from engine.core.store import StageDir, held, locked, register_writer, stage_key
from flows import console
from flows.run import Run
from flows.stages import ask
from flows.stages.base import Done, clock, done, split

if TYPE_CHECKING:
    from segmentation.annotate import AnnotateDeps

_models: dict[str, AnnotateDeps] = {}
#: The last window's shards: which they are is asked again and again, and never changes for a place in the store.
_plans: dict[tuple[Path, int], list[tuple[Question, ...]]] = {}


def place(run: Run) -> StageDir | None:
    """Where the window's masks lie; None while the questions are not there."""
    from segmentation.annotate import VERSION
    from segmentation.registry import annotator_key

    before = ask.place(run)
    if before is None or not before.finished:
        return None
    config = {
        "annotate": annotator_key(
            run.config.annotate,
            weights_dir=run.weights,
            references=run.references,
            marks_model=run.config.llm.model if run.config.annotate.marks else "",
        )
    }
    return run.home.stage(run.window, "annotate", stage_key("annotate", VERSION, config, before.digests()))


def shards(run: Run) -> list[tuple[Question, ...]]:
    """The shards of the window: the same list in every process."""
    from segmentation.shards import plan

    before = ask.place(run)
    assert before is not None
    key = (before.path, run.config.annotate.shard_images)
    if key not in _plans:
        _plans.clear()
        _plans[key] = plan(before.read(Question), images_per_shard=run.config.annotate.shard_images)
    return _plans[key]


def missing(run: Run) -> list[int]:
    """Indexes of the shards that nobody has committed yet."""
    where = place(run)
    if where is None or where.finished:
        return []
    return [index for index in range(len(shards(run))) if not where.shard_done(index)]


def prepare(run: Run) -> None:
    """Before anybody asks which shards are missing: they are cut as this configuration cuts them."""
    where = place(run)
    if where is not None and not where.finished:
        register_writer(run.home.root)
        where.agree(f"{run.config.annotate.shard_images} images")


def progress(run: Run) -> tuple[int, bool]:
    """How many shards are still missing, and whether somebody works on one at this moment."""
    where = place(run)
    if where is None or where.finished:
        return 0, False
    left = missing(run)
    return len(left), any(held(_lock(where, index)) for index in left)


def _lock(where: StageDir, index: int) -> Path:
    return where.path / f".shard-{index:05d}.lock"


def do_shards(run: Run, indexes: Sequence[int]) -> int:
    """Annotate these shards; a shard that another worker holds or has finished is left to it. Returns how many
    images were annotated here. The models are loaded once per process."""
    from segmentation import annotate

    where = place(run)
    if where is None:
        raise TerminalError(
            f"the questions of {run.window.label} are not there under this version and these settings: this worker "
            "needs the code and the nest.toml of the run that sent it"
        )
    if where.finished:
        return 0
    prepare(run)
    deps = None
    images = 0
    plan = shards(run)
    with console.bar("annotate", sum(_images(plan[index]) for index in indexes)) as bar:
        for index in indexes:
            try:
                # a moment's patience: whoever only looks whether the shard is held must not turn a worker away
                with locked(_lock(where, index), wait_s=0.1):
                    if not where.shard_done(index):
                        deps = deps or _deps(run)
                        began = time.monotonic()
                        kept, lost = split(annotate.run(plan[index], run.config.annotate, deps=deps), Annotation)
                        count, seconds = _images(plan[index]), time.monotonic() - began
                        where.commit_shard(index, kept, lost, run={**clock(began), "images": count})
                        images += count
                        there = sum(_images(part) for number, part in enumerate(plan) if where.shard_done(number))
                        console.say(
                            f"  annotate   shard {index + 1}: {count} images, {count / max(seconds, 1e-6):.2f} "
                            f"images/s; {there} of {sum(map(_images, plan))} images of the window are done"
                        )
            except RefusedError:
                continue
            bar.step(_images(plan[index]))
    return images


def _images(part: Sequence[Question]) -> int:
    return len({image for question in part for image in question.images})


def _pace(where: StageDir, count: int) -> dict[str, Any]:
    """Images, the seconds that workers spent on them together, and images per second of one worker."""
    told = [where.run_of(index) for index in range(count)]
    images, seconds = sum(one.get("images", 0) for one in told), sum(one.get("seconds", 0.0) for one in told)
    return {
        "images": images,
        "worker_seconds": round(seconds, 3),
        "images_per_second": round(images / seconds, 3) if seconds else 0.0,
    }


def finish(run: Run) -> Done:
    """Join the shards. Raises `TransientError` if a shard is still missing (its worker died or still works)."""
    where = place(run)
    assert where is not None
    if where.finished:
        return done("annotate", where, fresh=False)
    started = time.monotonic()
    count = len(shards(run))
    left = missing(run)
    if left:
        raise TransientError(f"{len(left)} of {count} shards of masks are not done yet: run the same command again")
    with where.lock(wait_s=60):
        if where.finished:
            return done("annotate", where, fresh=False)
        where.sweep()
        annotations, rejected = where.read_shards(Annotation, count)
        where.commit(
            annotations,
            rejected,
            stage="annotate",
            found=len(annotations) + len(rejected),
            run={**clock(started), **_pace(where, count)},
        )
    return done("annotate", where, fresh=True)


def do(run: Run) -> Done:
    """Annotate the window in this process unless that is done."""
    ask.do(run)
    where = place(run)
    assert where is not None
    prepare(run)
    if not where.finished:
        do_shards(run, missing(run))
    return finish(run)


def _deps(run: Run) -> AnnotateDeps:
    from flows.wiring import annotate_deps

    key = str((run.home.root, run.config.annotate))
    if key not in _models:
        _models.clear()
        _models[key] = annotate_deps(run)
    return _models[key]
