"""Commands for whoever keeps a Prefect server: `nest ops ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from flows import console
from flows.commands.common import DryRunOption, JsonOption, next_step, print_json

ops = typer.Typer(help="Keep a Prefect server: automations that mend what workers leave.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(ops, name="ops")
    ops.command("install-automations")(install_automations)


def install_automations(
    silent_s: Annotated[
        int, typer.Option("--silent-s", min=60, help="Seconds without a heartbeat after which a run has crashed.")
    ] = 540,
    late_s: Annotated[
        int, typer.Option("--late-s", min=60, help="Seconds after which a run that no worker takes is cancelled.")
    ] = 21600,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the server at PREFECT_API_URL what to do with silent runs and with runs that nobody takes."""
    from flows.automations import install

    done = install(silent_s=silent_s, late_s=late_s, dry_run=dry_run)
    if as_json:
        print_json([{"name": one.name, "done": one.done} for one in done])
        return
    for one in done:
        console.say(f"{one.name}: {'would be ' if dry_run and one.done != 'there already' else ''}{one.done}")
    next_step("nest doctor")
