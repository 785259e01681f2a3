"""Commands that make a snapshot: demo, refresh, its single stages, harvest and backfill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows import console
from flows.commands.common import (
    ConfigOption,
    DryRunOption,
    JsonOption,
    ReviseOption,
    WindowOption,
    config_of,
    next_step,
    print_json,
)

if TYPE_CHECKING:
    from flows.run import Run

LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Take only so many links: a pilot, kept apart and never pushed.")
]


UsdOption = Annotated[
    float | None, typer.Option("--max-usd", help="Stop cleanly with exit code 3 when so many US dollars are spent.")
]
TokensOption = Annotated[
    int | None, typer.Option("--max-tokens", help="Stop cleanly with exit code 3 when so many tokens are used.")
]
BatchOption = Annotated[
    bool,
    typer.Option(
        "--batch",
        help="Ask by the endpoint's Batch API: half the price; ends with exit code 3 until replies are there.",
    ),
]


def _overrides(
    limit: int | None, max_usd: float | None, max_tokens: int | None, *, batch: bool = False
) -> dict[str, Any]:
    told = {
        "collect.limit": limit,
        "llm.max_usd": max_usd,
        "llm.max_tokens": max_tokens,
        "ask.batch": True if batch else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def register(app: typer.Typer) -> None:
    app.command()(demo)
    app.command()(refresh)
    app.command()(harvest)
    app.command()(backfill)
    for name, text in (
        ("collect", "Collect the news of a window."),
        ("ask", "Write and check the questions of a window (and what it needs)."),
        ("annotate", "Make the masks of a window (and what it needs)."),
        ("snapshot", "Build the snapshot folder of a window (and what it needs)."),
    ):
        app.command(name, help=text)(_stage_command(name))


def demo(
    home: Annotated[Path, typer.Option("--home", help="Where the demo keeps its data.")] = Path("nest-demo"),
    as_json: JsonOption = False,
) -> None:
    """Run the whole pipeline over the bundled sample week: no network, no key, no GPU."""
    from flows.demo import run_demo

    run_demo(home, as_json=as_json)


def refresh(
    window: WindowOption = None,
    config: ConfigOption = None,
    limit: LimitOption = None,
    max_usd: UsdOption = None,
    max_tokens: TokensOption = None,
    batch: BatchOption = False,
    revise: ReviseOption = False,
    recollect: Annotated[
        bool, typer.Option("--recollect", help="With --revise: fetch the news of the window anew as well.")
    ] = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make, push and score the snapshot of one window, doing only what is missing."""
    from flows.run import next_revision, open_run

    overrides = _overrides(limit, max_usd, max_tokens, batch=batch)
    run = open_run(window, config_path=config, overrides=overrides, revise=revise)
    if recollect:
        if not revise:
            raise typer.BadParameter("a finished window is collected anew only with --revise --recollect")
        if not dry_run:
            run = next_revision(run)
    if dry_run:
        _tell_plan(run, as_json=as_json)
        return
    refresh_window(run, config=config, overrides=overrides, as_json=as_json)


def refresh_window(run: Run, *, config: Path | None, overrides: dict[str, Any], as_json: bool = False) -> None:
    """Refresh with progress and a closing table; a finished window answers before prefect is imported."""
    from flows.plan import all_done
    from flows.report import show_result

    if all_done(run):
        console.say(f"{run.window.label} is finished, nothing to do.")
        show_result(run, as_json=as_json)
        return
    console.say(f"window {run.window.label}: {run.window.first} to {run.window.last} (UTC), home {run.home.root}")
    run_flow(run, config=config, overrides=overrides)
    show_result(run, as_json=as_json)


def run_flow(run: Run, *, config: Path | None, overrides: dict[str, Any]) -> None:
    """The refresh flow in this process, under an embedded Prefect server unless PREFECT_API_URL names one.

    Whatever ends the flow is raised here as itself.
    """
    from flows.doctor.examine import refuse_unfit
    from flows.embedded.start import prefect

    refuse_unfit(run)
    run.home.root.mkdir(parents=True, exist_ok=True)
    with prefect(run.home.root):
        from flows.embedded.inline import call
        from flows.refresh import refresh as flow

        call(
            flow,
            window=run.window.label,
            config=str(config) if config else None,
            overrides=overrides or None,
            revise=run.revise,
        )


def _tell_plan(run: Run, *, upto: str = "", as_json: bool) -> None:
    """What is done and what is to do, and what the questions would cost; `upto` leaves out what comes after a stage."""
    from flows.plan import states

    found = states(run)
    if upto:
        found = found[: [state.stage for state in found].index(upto) + 1]
    if as_json:
        print_json([{"stage": s.stage, "finished": s.finished, "wanted": s.wanted, "kept": s.kept} for s in found])
        return
    from flows.stages.ask import estimates

    for state in found:
        word = "done" if state.finished else ("to do" if state.wanted else "not wanted")
        console.say(f"  {state.stage:<10} {word}" + (f"  ({state.kept} kept)" if state.finished and state.kept else ""))
    for one in estimates(run) if upto != "collect" else ():
        money = "price unknown" if one.usd is None else f"about {one.usd:.2f} US dollars, at most {one.usd_most:.2f}"
        console.say(
            f"  ask would send {one.requests} requests ({one.answered} are paid already): "
            f"about {one.tokens_in} tokens in, {one.tokens_out} out; {money}"
        )


def _stage_command(name: str) -> Any:
    def command(
        window: WindowOption = None,
        config: ConfigOption = None,
        limit: LimitOption = None,
        max_usd: UsdOption = None,
        max_tokens: TokensOption = None,
        batch: BatchOption = False,
        revise: ReviseOption = False,
        dry_run: DryRunOption = False,
        as_json: JsonOption = False,
    ) -> None:
        import importlib
        from dataclasses import asdict

        from flows.run import open_run

        overrides = _overrides(limit, max_usd, max_tokens, batch=batch)
        run = open_run(window, config_path=config, overrides=overrides, revise=revise)
        if dry_run:
            _tell_plan(run, upto=name, as_json=as_json)
            return
        if name == "snapshot":
            importlib.import_module("flows.stages.annotate").do(run)
        result = importlib.import_module(f"flows.stages.{name}").do(run)
        if as_json:
            print_json(asdict(result))
        else:
            state = "finished" if result.fresh else "was finished before, nothing to do"
            console.say(
                f"{name} of {run.window.label} {state}: {result.kept} of {result.found} kept. {result.note}".rstrip()
            )
            console.say(f"  {result.path}")
        following = {"collect": "ask", "ask": "annotate", "annotate": "snapshot", "snapshot": "score"}[name]
        next_step(
            f"nest {following} --window {run.window.label}" if name != "snapshot" else f"nest score {run.window.label}"
        )

    command.__name__ = name
    return command


def harvest(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Look at all sources once and remember what they show; to be run every few hours."""
    import asyncio
    from dataclasses import asdict

    from flows.stages.harvest import require_an_answer, round_over

    report = asyncio.run(round_over(config_of(config)))
    if as_json:
        print_json(asdict(report))
    else:
        for line in report.lines():
            console.say(line)
    require_an_answer(report)
    if not as_json:
        next_step("nest status")


def backfill(
    first: Annotated[str, typer.Option("--from", help="First day, YYYY-MM-DD.")],
    last: Annotated[str, typer.Option("--to", help="Last day, YYYY-MM-DD.")],
    every: Annotated[str, typer.Option("--every", help="Length of a window, e.g. 7d.")] = "7d",
    only_missing: Annotated[bool, typer.Option("--only-missing", help="Leave out windows that are finished.")] = False,
    deployment: Annotated[
        str, typer.Option("--deployment", help="Send the windows to this Prefect deployment, e.g. refresh/backfill.")
    ] = "",
    attempt: Annotated[
        int,
        typer.Option(
            "--attempt", min=1, help="With --deployment: a failed window is sent again only with a new number."
        ),
    ] = 1,
    wait: Annotated[
        bool, typer.Option("--wait", help="With --deployment: wait until all windows have ended, then tell how.")
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", min=1, max=64, help="Windows at a time, each in a process and with requests of its own."
        ),
    ] = 1,
    max_usd: UsdOption = None,
    max_tokens: TokensOption = None,
    batch: BatchOption = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Refresh the windows of a range of dates, those that are missing; goes on after a failure."""
    from flows.backfill import How, backfill_range

    if deployment and jobs > 1:
        raise typer.BadParameter("--jobs is for windows done here; a deployment's concurrency limit bounds its runs")
    if not deployment and (wait or attempt > 1):
        raise typer.BadParameter("--wait and --attempt go with --deployment")
    code = backfill_range(
        first,
        last,
        every=every,
        only_missing=only_missing,
        how=How(config, _overrides(None, max_usd, max_tokens, batch=batch), jobs, deployment, attempt, wait),
        dry_run=dry_run,
        as_json=as_json,
    )
    if code:
        raise typer.Exit(code)
