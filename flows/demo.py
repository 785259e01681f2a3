"""`nest demo`: the bundled sample week through the same road as a real refresh, and how good its masks are.

The week's publishers are served over real HTTP on loopback. Nothing here takes part in the pipeline: it writes the
configuration, starts the little server, and at the end compares with the known truth.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from engine.core.config import load_config
from engine.core.errors import TerminalError
from engine.core.geometry import mask_iou
from engine.core.masks import decode_rle
from engine.core.schema import Annotation, Question
from engine.core.store import write_atomic
from flows import console
from flows.commands.common import next_step, print_json
from flows.run import Run, run_for
from flows.stages import annotate, ask

WINDOW = "261116_261122"
HEAD = "# Settings of the demo, for other commands: export NEST_CONFIG=.../demo.toml\n"


def run_demo(home: Path, *, as_json: bool = False) -> None:
    """Run the demo into `home`; a second time it only says that all is there."""
    from flows.commands.pipeline import run_flow
    from flows.plan import all_done
    from flows.report import show_result, summary
    from flows.sample.config import sample_overrides, to_toml
    from flows.sample.server import SamplePublishers

    started = time.monotonic()
    config = home.absolute() / "demo.toml"
    with SamplePublishers() as server:
        settings = {"home": ".", **sample_overrides(server.port)}
        settings["score"]["known_truth"] = "sample"
        # the port is another one each time, so it is no part of the file (nor of any key)
        overrides = {"collect.resolve": settings["collect"].pop("resolve")}
        text = (HEAD + to_toml(settings)).encode()
        if not config.is_file() or config.read_bytes() != text:
            write_atomic(config, text)
        run = run_for(load_config(config, environ={}, overrides=overrides), WINDOW, revise=True)
        if all_done(run):
            console.say(f"the demo is finished, nothing to do; remove {home} to run it again.")
        else:
            console.say(f"sample week {run.window.first} to {run.window.last}: three made-up publishers on loopback")
            run_flow(run, config=config, overrides=overrides)
            if not all_done(run):
                raise TerminalError(
                    "the demo's stages are not all there after the run: was the program changed meanwhile?"
                )
            console.say(f"finished in {time.monotonic() - started:.0f} s")
    quality = mask_quality(run)
    if as_json:
        print_json({**summary(run), "mask_quality": quality})
        return
    show_result(run, hint=False)
    console.say(
        f"masks     mean IoU {quality['mean_iou']:.3f} against the known truth; {quality['accepted']} of "
        f"{quality['answerable']} answerable pairs accepted, {quality['wrong_entity']} bound to the wrong entity"
    )
    console.say(f"look around: export NEST_CONFIG={config}, then nest status, nest show, nest report {WINDOW}")
    next_step("nest init, then nest refresh --limit 20")


def mask_quality(run: Run) -> dict[str, Any]:
    """The annotator against the known masks: mean IoU over accepted pairs, and how many were bound wrongly.

    Bound wrongly means that the mask overlaps another known entity of the picture more than its own, or that the
    entity is not in the picture at all. A pair is answerable if the entity is known to be in the picture and a
    checked question about it reached the annotator.
    """
    from flows.sample.truth import known_entities, true_mask

    pictures = {entity.image for entity in known_entities()}

    questions_at, masks_at = ask.place(run), annotate.place(run)
    if questions_at is None or masks_at is None or not masks_at.finished:
        return {"mean_iou": 0.0, "accepted": 0, "answerable": 0, "wrong_entity": 0, "pairs": []}
    questions = {question.id: question for question in questions_at.read(Question)}
    answerable = {(q.images[0], q.answer) for q in questions.values() if true_mask(q.images[0], q.answer) is not None}
    pairs: dict[tuple[str, str], float] = {}
    wrong = 0
    for annotation in masks_at.read(Annotation):
        question = questions[annotation.question_id]
        for image in annotation.images:
            truth = true_mask(image.image, question.answer)
            if truth is None:
                wrong += image.image in pictures
                continue
            mask = decode_rle(image.rle)
            own = mask_iou(mask, truth)
            others = [e.name for e in known_entities() if e.image == image.image and e.name != question.answer]
            masks = [true_mask(image.image, name) for name in others]
            wrong += any(mask_iou(mask, other) > own for other in masks if other is not None)
            pairs[image.image, question.answer] = own
    return {
        "mean_iou": sum(pairs.values()) / len(pairs) if pairs else 0.0,
        "accepted": len(pairs),
        "answerable": len(answerable),
        "wrong_entity": wrong,
        "pairs": sorted([iou, name, image[:12]] for (image, name), iou in pairs.items()),
    }
