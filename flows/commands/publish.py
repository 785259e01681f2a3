"""Commands for what is published: push and verify."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json

if TYPE_CHECKING:
    from engine.snapshot.hub import PushResult


def register(app: typer.Typer) -> None:
    app.command()(push)
    app.command()(verify)


def snapshot_folder(text: str, config: Path | None) -> Path:
    """A snapshot folder from its path, its name, or its window. Raises `ConfigError` with what is there."""
    from engine.core.store import Home
    from engine.core.windows import parse_window

    if not text.strip():
        raise ConfigError("the snapshot's name is empty")
    if Path(text).is_dir():
        return Path(text)
    home = Home(config_of(config).home)
    for name in (text, f"NEST_{text}"):
        if home.snapshot(name).is_dir():
            return home.snapshot(name)
    there = sorted(path.name for path in home.snapshot("x").parent.glob("NEST_*") if path.is_dir())
    try:
        named = home.snapshot(parse_window(text).name)
    except ConfigError:
        named = None
    if named is not None and named.is_dir():
        return named
    raise ConfigError(
        f"there is no snapshot '{text}' in {home.root}: "
        + (f"there are {', '.join(there)}" if there else "it has none yet")
    )


def push(
    snapshot: Annotated[str, typer.Argument(help="Folder, name or window of a snapshot.")],
    repo: Annotated[str | None, typer.Option("--repo", help="owner/name; default: [hub] repo.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Create the repository private.")] = False,
    allow_portable: Annotated[
        bool, typer.Option("--allow-portable", help="Push rows made by the template writer or the portable annotator.")
    ] = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Push a snapshot to the Hub: verified, in one commit, with a tag, read back."""
    from engine.snapshot.hub import push as push_folder
    from flows.wiring import hub_token

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)
    target = repo or settings.hub.repo
    if not target:
        raise ConfigError("no repository: give --repo OWNER/NAME or set [hub] repo in nest.toml")
    result = push_folder(
        folder,
        repo=target.replace("{name}", folder.name),
        token=hub_token(),
        private=private or settings.hub.private,
        dry_run=dry_run,
        allow_portable=allow_portable,
    )
    if as_json:
        print_json(asdict(result))
        return
    console.say(sentence(result))
    next_step(f"nest verify {target.replace('{name}', folder.name)}")


def sentence(result: PushResult) -> str:
    """What a push did, in one line."""
    size = f"{result.size_bytes / 1e6:.1f} MB"
    return {
        "pushed": f"pushed {result.rows} rows ({len(result.files)} files, {size}) as {result.revision}: {result.url}",
        "nothing to do": f"{result.repo} holds the same bytes already, nothing to do: {result.url}",
        "would push": f"would push {result.rows} rows ({len(result.files)} files, {size}) to {result.repo}",
        "would create and push": f"would create {result.repo} and push {result.rows} rows ({size})",
    }[result.done]


def verify(
    snapshot: Annotated[str, typer.Argument(help="Folder, name or window of a snapshot, or OWNER/NAME[@REVISION].")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a snapshot: hashes, schema, card against data, every image and mask."""
    from engine.snapshot.verify import verify as verify_folder
    from engine.snapshot.verify import verify_repo
    from flows.wiring import hub_token

    try:
        folder = snapshot_folder(snapshot, config)
    except ConfigError:
        if "/" not in snapshot or snapshot.startswith((".", "/")):
            raise
        findings = verify_repo(snapshot, token=hub_token())
    else:
        findings = verify_folder(folder)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            console.out(f"{finding.kind}  {finding.file}  {finding.detail}")
        console.say(f"{snapshot}: " + (f"{len(findings)} findings" if findings else "good"))
    if findings:
        raise typer.Exit(1)
