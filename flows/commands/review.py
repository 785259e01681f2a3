"""Commands for looking at real rows, and for publishing what was held back: review and release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows import console
from flows.commands.common import ConfigOption, JsonOption, config_of, next_step, print_json
from flows.commands.publish import snapshot_folder


def register(app: typer.Typer) -> None:
    app.command()(review)


def review(
    snapshot: Annotated[str, typer.Argument(help="Folder, name or window of a snapshot.")],
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", help="Whose verdicts these are; default: the login's name.")
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    summary: Annotated[bool, typer.Option("--summary", help="Only say what was found so far.")] = False,
    merge: Annotated[
        list[Path] | None, typer.Option("--merge", help="Take in another reviewer's file; may be given again.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at rows in the browser, by keys: a random sample for the error, and the lowest margins apart."""
    from engine.core.store import Home
    from engine.snapshot.manifest import read_manifest
    from flows.review.run import found, plain, reviewer_name, serve, take_in

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)
    manifest = read_manifest(folder)
    home = Home(settings.home)
    for path in merge or ():
        new, names = take_in(home.root, manifest, path)
        console.say(f"{path}: {new} new verdicts of {', '.join(names)}")
    if not summary and not merge:
        name = reviewer_name(reviewer)

        def ready(url: str) -> None:
            console.say(f"{manifest.name} {manifest.revision}, reviewer {name}: open this address in a browser here")
            # alone on its line, so that a terminal makes it a link
            console.out(url)
            console.say("every verdict is kept at once; q on the page or Ctrl-C here ends the review")

        try:
            serve(home, folder, manifest, settings, reviewer=name, port=port, ready=ready)
        except KeyboardInterrupt:
            console.say("ended; what was said is kept, the same command goes on")
    told = found(home.root, manifest.name)
    if as_json:
        print_json(plain(told))
        return
    console.say(f"{manifest.name}: {told.sentence() if told else 'not reviewed'}")
    if told is not None:
        for label, value in list(told.measured().items())[1:]:
            console.say(f"  {label.lower()}: {value}")
        if told.revision == manifest.revision:
            next_step(f"nest amend {snapshot} --from-review")
