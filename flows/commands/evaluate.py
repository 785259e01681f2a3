"""Commands that score and quote: score, report, cite, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json


def register(app: typer.Typer) -> None:
    app.command()(score)
    app.command()(report)
    app.command()(cite)
    app.command()(replay)


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
    from flows.stages import score as stage
    from inference.rose.ablation import ablation

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
    from engine.core.windows import parse_window
    from flows.run import run_for
    from flows.stages import score as stage

    if not Path(dataset).exists():
        try:
            window = parse_window(dataset)
        except ConfigError:
            return stage.task_for(dataset, settings)
        try:
            task = stage.task_of(run_for(settings, window.label))
        except ConfigError:  # the configuration cannot be fingerprinted here; its snapshot can be read all the same
            task = None
        if task is not None:
            return task
    return stage.task_for(dataset, settings)


def report(
    dataset: Annotated[str | None, typer.Argument(help="Window or snapshot whose score table is printed.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Write the leaderboard over all scored windows.")] = False,
    anchors: Annotated[
        list[str] | None,
        typer.Option(
            "--anchor",
            help="A frozen segmenter that scores every window; may be given again. Default: [score] anchors.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the leaderboard; default: <home>/leaderboard.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a window's score table, or write the leaderboard over time."""
    from flows.stages import score as stage

    settings = config_of(config)
    if every:
        from engine.core.store import Home
        from flows.compare import read_shifts
        from inference.report.leaderboard import write_leaderboard

        home = Home(settings.home)
        found = stage.latest_reports(home)
        target = out or home.root / "leaderboard"
        shifts = {shift.window: shift.sentence() for shift in read_shifts(settings.home)}
        write_leaderboard(found, target, anchors=tuple(anchors or settings.score.anchors), shifts=shifts)
        if as_json:
            print_json({"windows": [item.window for item in found], "folder": str(target)})
        else:
            console.say(f"leaderboard over {len(found)} windows: {target}")
        return
    if dataset is None:
        raise ConfigError("say which window, or give --all")
    place = stage.stored_report(_task(dataset, settings))
    if place is None:
        raise ConfigError(f"{dataset} was not scored yet: run 'nest score {dataset}'")
    if as_json:
        print_json({"report": str(place), "scores": stage.figures(place)})
    else:
        console.out(stage.table(place))
        console.say(f"report    {place}/report.html")


def cite(
    dataset: Annotated[str, typer.Argument(help="Window or snapshot, or a report.json.")],
    config: ConfigOption = None,
) -> None:
    """Print the methods paragraph, a LaTeX table and BibTeX for a scored window."""
    from flows.stages import score as stage
    from inference.report.cite import bibtex, latex, methods
    from inference.report.publish import read_report

    path = Path(dataset)
    if path.suffix == ".json" and path.is_file():
        found = read_report(path)
    else:
        told = stage.read_report(stage.stored_report(_task(dataset, config_of(config))))
        if told is None:
            raise ConfigError(f"{dataset} was not scored yet: run 'nest score {dataset}'")
        found = told
    console.out("\n\n".join([methods(found), latex(found), bibtex(found)]))


def replay(
    text: Annotated[str, typer.Argument(metavar="STRING", help="The score string of a report.")],
    published: Annotated[Path, typer.Option("--published", help="Folder with report.json and predictions.")],
    dataset: Annotated[str, typer.Option("--data", help="The snapshot: window, folder or OWNER/NAME@REVISION.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score published predictions again and compare every figure with the published ones."""
    from engine.core.store import Home
    from inference.benchmarks.registry import open_benchmark
    from inference.report.cite import replay as again
    from inference.report.publish import read_published

    home = Home(config_of(config).home)
    stored = read_published(published)
    benchmark = open_benchmark(dataset, snapshots=home.snapshot("x").parent)
    done = again(text, stored.report, benchmark, stored.predictions())
    equal = not done.differences
    if as_json:
        print_json({"equal": equal, "differences": list(done.differences), "removed": list(done.removed)})
    else:
        for line in done.differences:
            console.out(line)
        if done.removed:
            console.out(f"rows removed since: {', '.join(done.removed)}")
        console.say("the same digits" if equal else f"{len(done.differences)} figures differ")
    if not equal:
        raise typer.Exit(1)
