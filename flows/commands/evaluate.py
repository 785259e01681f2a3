"""The command that scores. Reports and quoting are in `quote`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.core.schema import Window
    from flows.stages.score import Task


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
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            "--ablation",
            help="A segmenter, bare and inside ROSE with its modules switched on one by one; may be given again.",
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Answer from recorded searches and replies alone; needs no key.")
    ] = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run segmenters over a dataset, or take predictions from files, and score them."""
    from flows.stages import reports
    from flows.stages import score as stage
    from inference.rose.ablation import ablation
    from inference.segmenters.registry import require_address

    if any(not path.strip() for path in predictions or ()):
        raise ConfigError("--predictions names no file: it is empty")
    told = [
        *(segmenter or ()),
        *(name for inner in ablate or () for name in ablation(inner)),
        *(f"files:{Path(path).absolute()}" for path in predictions or ()),
    ]
    names = list(dict.fromkeys(told))
    overrides: dict[str, Any] = {"score.segmenters": names} if names else {}
    if offline:
        overrides["score.offline"] = True
    settings = config_of(config, overrides)
    task = task_named(dataset, settings)
    if task.run is None and _is_window(dataset):
        console.say(
            f"the snapshot of {dataset} was made with other settings or an earlier version: it is scored as it lies, "
            "and the window's own news cannot be searched ('nest refresh' brings it up to date)"
        )
    if dry_run:
        for name in settings.score.segmenters:
            require_address(name, settings)
    found = stage.places(task)
    if dry_run:
        for name, where in found.items():
            state = "done" if where.finished else "to do"
            console.say(f"  {name:<24} {state}")
        return
    done = stage.do_task(task)
    place = stage.place(task)
    if as_json:
        print_json(
            {"dataset": task.name, "report": done.path, "scores": reports.figures(place), "costs": reports.costs(place)}
        )
        return
    if not done.fresh:
        console.say("everything was scored before, nothing to do.")
    console.say(reports.table(place))
    console.say(f"report    {done.path}/report.html")
    next_step(f"nest report {dataset}" if not names else f"nest score {dataset}")


def _is_window(dataset: str) -> bool:
    return not Path(dataset).exists() and _window_of(dataset) is not None


def _window_of(text: str) -> tuple[Window, int | None] | None:
    """The window that a text names, and the limit of its pilot (`261116_261122.pilot20`); None if it names none."""
    from engine.core.pilots import split_pilot
    from engine.core.windows import parse_window

    name, limit = split_pilot(text)
    try:
        return parse_window(name), limit
    except ConfigError:
        return None


def task_named(dataset: str, settings: Config) -> Task:
    """A window of this home, or its pilot, with its own news to search; else any benchmark."""
    from engine.core.pilots import pilot_name
    from flows.run import run_for
    from flows.stages import score as stage

    named = None if Path(dataset).exists() else _window_of(dataset)
    if named is None:
        return stage.task_for(dataset, settings)
    window, limit = named
    if limit is not None:
        settings = settings.model_copy(update={"collect": settings.collect.model_copy(update={"limit": limit})})
    # a configuration with a limit means the pilot, where there is one
    pilot = settings.collect.limit
    names = [pilot_name(window.name, pilot), *([window.name] if limit is None else [])]
    name = next((name for name in names if (settings.home / "snapshots" / name).is_dir()), None)
    if name is None:
        raise ConfigError(
            f"there is no snapshot of {names[0].removeprefix('NEST_')} in {settings.home}: 'nest refresh --window "
            f"{window.label}{f' --limit {pilot}' if pilot else ''}' makes one"
        )
    try:
        task = stage.task_of(run_for(settings, window.label))
    except ConfigError:  # the configuration cannot be fingerprinted here; its snapshot can be read all the same
        task = None
    return stage.task_for(name, settings) if task is None else task
