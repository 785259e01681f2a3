"""Commands for scores that others are to trust: report, cite, replay, novelty."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import ConfigOption, JsonOption, config_of, next_step, print_json
from flows.commands.evaluate import task_named


def register(app: typer.Typer) -> None:
    app.command()(report)
    app.command()(cite)
    app.command()(replay)
    app.command()(novelty)


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
    push: Annotated[
        str,
        typer.Option("--push", help="With --all: OWNER/NAME of a dataset repository for it and the published runs."),
    ] = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a window's score table, or write the leaderboard over time."""
    from flows.stages import reports

    settings = config_of(config)
    if every:
        _leaderboard(settings, tuple(anchors or settings.score.anchors), out, push, as_json=as_json)
        return
    if push:
        raise ConfigError("--push goes with --all: it shares the leaderboard and all published runs")
    if dataset is None:
        raise ConfigError("say which window, or give --all")
    place = reports.stored_report(task_named(dataset, settings))
    if place is None:
        raise ConfigError(f"{dataset} was not scored yet: run 'nest score {dataset}'")
    if as_json:
        print_json({"report": str(place), "scores": reports.figures(place)})
    else:
        console.out(reports.table(place))
        console.say(f"report    {place}/report.html")


def _leaderboard(settings: object, anchors: tuple[str, ...], out: Path | None, push: str, *, as_json: bool) -> None:
    from engine.core.config import Config
    from engine.core.store import Home
    from engine.snapshot.hub_static import push_static
    from engine.snapshot.names import repo_id
    from flows.quoting import shared_files
    from flows.shifts import read_shifts
    from flows.stages import reports
    from flows.wiring import hub_token
    from inference.report.leaderboard import write_leaderboard

    assert isinstance(settings, Config)
    home = Home(settings.home)
    found = reports.latest_reports(home)
    scored = {row.segmenter for item in found for row in item.rows if row.kind == "segmenter"}
    for name in anchors:
        if name not in scored:
            console.say(f"the anchor {name} scored nothing here: no difference to it can be shown")
    target = out or home.root / "leaderboard"
    shifts: dict[str, str] = {}
    for shift in read_shifts(settings.home):
        shifts[shift.window] = "; ".join(told for told in (shifts.get(shift.window), shift.sentence()) if told)
    write_leaderboard(
        found,
        target,
        anchors=anchors,
        retired=settings.score.retired,
        knowledge=settings.score.cutoffs,
        shifts=shifts,
    )
    sent: list[str] = []
    if push:
        repo = repo_id(push, "")
        sent = push_static(
            shared_files(home, target),
            repo=repo,
            token=hub_token(),
            private=settings.hub.private,
            message="leaderboard",
        )
    if as_json:
        print_json({"windows": [item.window for item in found], "folder": str(target), "pushed": sent})
        return
    console.say(f"leaderboard over {len(found)} windows: {target}")
    if push:
        console.say(f"{push}: {len(sent)} files pushed" if sent else f"{push}: holds the same files, nothing to do")


def cite(
    dataset: Annotated[str, typer.Argument(help="Window or snapshot, or a report.json.")],
    config: ConfigOption = None,
) -> None:
    """Print the methods paragraph, a LaTeX table and BibTeX for a scored window."""
    from flows.quoting import refuse_trial
    from flows.stages import reports
    from inference.report.cite import bibtex, latex, methods
    from inference.report.publish import read_report

    path = Path(dataset)
    if path.suffix == ".json" and path.is_file():
        found = read_report(path)
    else:
        told = reports.read_report(reports.stored_report(task_named(dataset, config_of(config))))
        if told is None:
            raise ConfigError(f"{dataset} was not scored yet: run 'nest score {dataset}'")
        found = told
    refuse_trial(found)
    console.out("\n\n".join([methods(found), latex(found), bibtex(found)]))


def replay(
    text: Annotated[str, typer.Argument(metavar="STRING", help="The score string of a report.")],
    published: Annotated[
        str,
        typer.Option(
            "--published", help="Where the published runs are: a folder, or OWNER/NAME[@REVISION]; default: this home."
        ),
    ] = "",
    dataset: Annotated[
        str,
        typer.Option("--data", help="The snapshot; default: the one that the string pins, from the Hub or this home."),
    ] = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the pinned snapshot and the published predictions, score them again, and compare every figure."""
    from engine.core.store import Home
    from flows.quoting import pinned_data, published_run
    from inference.benchmarks.registry import open_benchmark
    from inference.metrics.scorestring import parse
    from inference.report.cite import replay as again
    from inference.report.tables import percent

    parse(text)
    home = Home(config_of(config).home)
    stored = published_run(text.strip(), home, published)
    if dataset:
        benchmark, remark = open_benchmark(dataset, snapshots=home.snapshot("x").parent), ""
    else:
        benchmark, remark = pinned_data(text, home)
    done = again(text, stored.report, benchmark, stored.predictions())
    equal = not done.differences
    rows = [row for row in done.report.rows if not row.split and row.kind == "segmenter"]
    figures = {row.segmenter: {name: row.value(name) for name in ("giou", "ciou")} for row in rows}
    if as_json:
        told = {"equal": equal, "differences": list(done.differences), "removed": list(done.removed)}
        print_json({**told, "figures": figures, "remark": remark})
    else:
        for name, values in figures.items():
            console.out(f"{name}: gIoU {percent(values['giou'], 4)}, cIoU {percent(values['ciou'], 4)}")
        for line in done.differences:
            console.out(line)
        if remark:
            console.say(remark)
        if done.removed:
            console.out(f"rows removed since: {', '.join(done.removed)}")
        console.say("the same digits" if equal else f"{len(done.differences)} figures differ")
    if not equal:
        raise typer.Exit(1)


def novelty(
    dataset: Annotated[str, typer.Argument(help="Window, snapshot folder, OWNER/NAME@REVISION, or LOADER:SOURCE.")],
    model: Annotated[str, typer.Option("--model", help="Id of the model that is asked what it knows.")],
    base_url: Annotated[
        str, typer.Option("--base-url", help="Its OpenAI-compatible address; default: [llm] base_url.")
    ] = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a model which entities it knows, with the picture and without: novel and emerging for that model."""
    import asyncio

    from flows.novelty import ask, place

    settings = config_of(config)
    task = task_named(dataset, settings)
    labels = asyncio.run(ask(task, model, base_url=base_url))
    counts = dict(sorted(Counter(label.label for label in labels).items()))
    path = place(task.home, task.name, model)
    if as_json:
        print_json({"model": model, "labels": counts, "path": str(path)})
        return
    console.say(f"{model}: " + ", ".join(f"{count} {name}" for name, count in counts.items()) + f"  ({path})")
    next_step(f'nest score {dataset}   with [score] novelty_model = "{model}"')
