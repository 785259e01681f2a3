"""The command that holds two configurations against each other: compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import DryRunOption, JsonOption, next_step, print_json

if TYPE_CHECKING:
    from flows.run import Run


def register(app: typer.Typer) -> None:
    app.command()(compare)


def compare(
    window: Annotated[str, typer.Argument(help="The window, as for --window.")],
    second: Annotated[
        list[Path],
        typer.Argument(metavar="B.TOML", help="The changed configuration (the second file after --config)."),
    ],
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="The configuration as it was; default: ./nest.toml.")
    ] = None,
    no_score: Annotated[bool, typer.Option("--no-score", help="Compare yield and masks only.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Take the pilot of so many articles.")] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """What a new writer, annotator or prompt changes on one window: nest compare W --config a.toml b.toml."""
    from flows.compare import compare as work
    from flows.compare import plain, table
    from flows.run import open_run

    if len(second) != 1:
        raise ConfigError("give two configurations: nest compare W --config a.toml b.toml")
    if (config or Path("nest.toml")).resolve() == second[0].resolve():
        raise ConfigError(f"{second[0]} is both configurations: give the one as it was, and the changed one")
    overrides = {"collect.limit": limit} if limit is not None else {}
    runs = [open_run(window, config_path=path, overrides=overrides) for path in (config, second[0])]
    if dry_run:
        _plan(runs)
        return
    shift = work(runs[0], runs[1], scored=not no_score)
    if as_json:
        print_json(plain(shift))
        return
    for line in shift.changes:
        console.out(f"changed   {line}")
    console.out(console.table(table(shift), right=frozenset({1, 2, 3})))
    told = shift.agreement
    console.out(
        f"questions: {told['questions_both']} in both, {told['questions_first_only']} only in the first, "
        f"{told['questions_second_only']} only in the second"
    )
    same, iou = told["same_entity"], told["mean_iou"]
    console.out(
        f"masks: {told['masks_both']} in both, {told['masks_first_only']} only in the first, "
        f"{told['masks_second_only']} only in the second"
        + ("" if same is None or iou is None else f"; same entity {100 * same:.1f} %, mean IoU {iou:.3f}")
    )
    next_step("nest report --all")


def _plan(runs: list[Run]) -> None:
    """What differs, and what the questions of both would still cost."""
    from flows.compare import changes
    from flows.stages import ask

    for line in changes(runs[0], runs[1]):
        console.say(f"  changed  {line}")
    for name, run in zip(("first", "second"), runs, strict=True):
        for one in ask.estimates(run):
            money = (
                "price not known" if one.usd is None else f"likely ${one.usd:.2f}, at most ${one.usd_most or 0.0:.2f}"
            )
            console.say(f"  {name}: {one.requests} requests to be paid, {money}")
