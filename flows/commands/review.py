"""Commands for looking at real rows, and for publishing what was held back: review, release, unseal, receive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows import console
from flows.commands.common import (
    AllowPortableOption,
    ConfigOption,
    DryRunOption,
    JsonOption,
    config_of,
    next_step,
    print_json,
)
from flows.commands.publish import snapshot_folder


def register(app: typer.Typer) -> None:
    app.command()(review)
    app.command()(release)
    app.command()(unseal)
    app.command()(receive)


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
    from engine.snapshot.verdicts import AFTERWARDS
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
            if label != AFTERWARDS:
                console.say(f"  {label.lower()}: {value}")
        if told.revision == manifest.revision:
            next_step(f"nest amend {snapshot} --from-review")


def release(
    snapshot: Annotated[str, typer.Argument(help="Window or name of a snapshot that was pushed privately.")],
    allow_portable: AllowPortableOption = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make a held-back snapshot public: the present revision, and none that a review replaced."""
    from dataclasses import asdict

    from engine.core.errors import ConfigError
    from engine.core.store import write_atomic
    from engine.snapshot.hub_sealed import release as publish
    from engine.snapshot.manifest import read_manifest
    from flows.commands.publish import run_of
    from flows.review.run import found
    from flows.stages import push as stage
    from flows.wiring import hub_token

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)
    manifest = read_manifest(folder)
    run = run_of(settings, folder)
    repo = stage.repository(run)
    if not repo:
        raise ConfigError("no repository: set [hub] repo in nest.toml")
    told = found(settings.home, manifest.name)
    console.say(f"{manifest.name} {manifest.revision}: {told.sentence() if told else 'not reviewed'}")
    if dry_run:
        console.say(f"would make {repo} public with {manifest.rows} rows")
        return
    done = publish(folder, repo=repo, token=hub_token(), allow_portable=allow_portable)
    write_atomic(stage.released_mark(run), b"{}\n")
    stage.note(run, manifest.rows)
    if as_json:
        print_json(asdict(done))
        return
    console.say(f"{repo}: {done.done}")
    next_step(f"nest verify {repo}")


def unseal(
    snapshot: Annotated[str | None, typer.Argument(help="Window or name of a sealed snapshot.")] = None,
    due: Annotated[bool, typer.Option("--due", help="All whose day has come; for a schedule.")] = False,
    early: Annotated[bool, typer.Option("--early", help="Before the promised day.")] = False,
    allow_portable: AllowPortableOption = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Publish the key, the answers and the masks of a sealed week."""
    from engine.core.errors import ConfigError
    from engine.snapshot.manifest import read_manifest
    from flows import sealed
    from flows.commands.publish import run_of
    from flows.stages import push as stage
    from flows.wiring import hub_token

    settings = config_of(config)
    now = sealed.today()
    if due == (snapshot is not None):
        raise ConfigError("say which week, or give --due")
    names = [week.name for week in sealed.due(settings.home, now=now)] if due else [str(snapshot)]
    for name in names:
        folder = snapshot_folder(name, config)
        if dry_run:
            console.say(f"would publish key, answers and masks of {folder.name}")
            continue
        kept, done = sealed.unseal(
            settings, folder, token=hub_token(), now=now, early=early, allow_portable=allow_portable
        )
        if stage.repository(run_of(settings, folder)) == kept.repo:
            stage.note(run_of(settings, folder), read_manifest(folder).rows)
        console.say(f"{done.repo}: {done.done}, {len(kept.received)} predictions were received before")
        for path in sealed.opened_files(settings.home, kept):
            console.say(f"  {path}")
        next_step(f"nest score {snapshot or name} --predictions FILE" if kept.received else f"nest verify {done.repo}")
    if not names:
        console.say("no sealed week is due")


def receive(
    snapshot: Annotated[str, typer.Argument(help="Window or name of a sealed snapshot.")],
    predictions: Annotated[Path, typer.Argument(help="A .jsonl or .parquet file with the sealed ids.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep predictions for a sealed week with the moment they came; once it is opened they are marked as sealed."""
    from flows import sealed

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)
    told = sealed.receive(settings.home, folder.name, predictions, now=sealed.today())
    if as_json:
        print_json(told.model_dump(mode="json"))
        return
    console.say(f"kept as {told.file}, sha256 {told.sha256}, received {told.at:%Y-%m-%d %H:%M} UTC")
