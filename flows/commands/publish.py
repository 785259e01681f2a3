"""Commands for what is published: push and verify."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.core.errors import ConfigError, RefusedError
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

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.snapshot.hub import PushResult
    from flows.run import Run


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
    allow_portable: AllowPortableOption = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Push a snapshot to the Hub: verified, in one commit, with a tag, read back."""
    from engine.core.pilots import split_pilot
    from engine.snapshot.hub import push as push_folder
    from engine.snapshot.manifest import read_manifest
    from flows.wiring import hub_token

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)
    target = repo or settings.hub.repo
    if not target:
        raise ConfigError("no repository: give --repo OWNER/NAME or set [hub] repo in nest.toml")
    if split_pilot(folder.resolve().name)[1] is not None:
        raise RefusedError(f"{folder.resolve().name} is a pilot, which is never pushed: refresh the whole window")
    target = target.replace("{name}", folder.name)
    name = read_manifest(folder).name
    if target.rpartition("/")[2] != name:
        raise ConfigError(f"{target}: the repository of a snapshot is called like it, OWNER/{name}")
    held = _held_back(settings, folder, target, private=private, dry_run=dry_run, allow_portable=allow_portable)
    if held is None:
        return
    result = push_folder(
        folder,
        repo=target,
        token=hub_token(),
        private=private or settings.hub.private or held,
        dry_run=dry_run,
        allow_portable=allow_portable,
    )
    run = run_of(settings, folder)
    if not dry_run and _is_own(run, folder, target):
        from flows.stages.push import note

        note(run, result.rows, state="held" if held else "")
    if as_json:
        print_json(asdict(result))
        return
    console.say(sentence(result))
    next_step(f"nest release {snapshot}" if held else f"nest verify {target}")


def run_of(settings: Config, folder: Path) -> Run:
    """The run of the window that a snapshot folder is of."""
    from engine.core.store import Home
    from engine.core.windows import parse_window
    from engine.snapshot.manifest import read_manifest
    from flows.run import Run

    return Run(settings, Home(settings.home), parse_window(read_manifest(folder).window))


def _is_own(run: Run, folder: Path, repo: str) -> bool:
    """Whether a folder is the home's own snapshot of the window, pushed to the window's own repository."""
    from flows.stages import push as stage
    from flows.stages import snapshot

    return snapshot.folder(run).resolve() == folder.resolve() and stage.repository(run) == repo


def _held_back(
    settings: Config, folder: Path, repo: str, *, private: bool, dry_run: bool, allow_portable: bool
) -> bool | None:
    """Whether a push is to be private until a release; None if the week is sealed, and was pushed so here."""
    from engine.snapshot.manifest import read_manifest
    from flows import sealed
    from flows.stages import push as stage
    from flows.wiring import hub_token

    manifest = read_manifest(folder)
    run = run_of(settings, folder)
    opens = sealed.opens_on(settings, run.window, manifest.name, now=sealed.today())
    if opens is None:
        held = settings.hub.hold and not stage.released(run)
        if held:
            stage.refuse_public(repo)
        return held
    if dry_run:
        console.say(
            f"would push pictures, questions and hashes of {manifest.rows} rows to {repo}, sealed until {opens}"
        )
        return None
    hidden = private or settings.hub.private
    told = sealed.push(
        settings, folder, repo=repo, opens=opens, token=hub_token(), private=hidden, allow_portable=allow_portable
    )
    if _is_own(run, folder, repo):
        stage.note(run, manifest.rows, state="sealed")
    console.say(f"{repo}: {told.done}; answers and masks follow on {opens}")
    next_step(f"nest unseal {run.window.label}")
    return None


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
