"""Commands that score: score and report."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json


def register(app: typer.Typer) -> None:
    app.command()(score)


def score(
    dataset: Annotated[
        str,
        typer.Argument(help="Window, snapshot folder, OWNER/NAME@REVISION, or LOADER:SOURCE such as reasonseg:PATH."),
    ],
    segmenter: Annotated[
        list[str] | None,
        typer.Option("--segmenter", "-s", help="A segmenter; may be given again. Default: [score] segmenters."),
    ] = None,
    predictions: Annotated[
        list[str] | None,
        typer.Option("--predictions", help="A folder of PNG by id, RLE in JSONL, or Parquet; may be given again."),
    ] = None,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run segmenters over a dataset, or take predictions from files, and score them."""
    from flows.stages import score as stage

    names = [*(segmenter or ()), *(f"files:{path}" for path in predictions or ())]
    overrides: dict[str, Any] = {"score.segmenters": names} if names else {}
    settings = config_of(config, overrides)
    task = _task(dataset, settings)
    found = stage.places(task)
    if dry_run:
        for name, where in found.items():
            state = "done" if where.finished else "to do"
            console.say(f"  {name:<24} {state}")
        return
    done = stage.do_task(task)
    place = stage.place(task)
    if as_json:
        print_json({"dataset": task.name, "report": done.path, "scores": stage.figures(place)})
        return
    if not done.fresh:
        console.say("everything was scored before, nothing to do.")
    console.say(stage.table(place))
    console.say(f"report    {done.path}/report.html")
    next_step("nest segmenters" if not names else f"nest score {dataset}")


def _task(dataset: str, settings: Any) -> Any:
    """A window or snapshot of this home with its own news to search, else any benchmark."""
    from pathlib import Path

    from engine.core.errors import ConfigError
    from engine.core.windows import parse_window
    from flows.run import run_for
    from flows.stages import score as stage

    if not Path(dataset).exists():
        try:
            window = parse_window(dataset)
        except ConfigError:
            return stage.task_for(dataset, settings)
        task = stage.task_of(run_for(settings, window.label))
        if task is not None:
            return task
    return stage.task_for(dataset, settings)
