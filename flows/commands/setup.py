"""Commands for setting up and keeping house: init, config, doctor, gc."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.core.errors import ConfigError, RefusedError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.command("config")(show_config)
    app.command()(doctor)
    app.command()(gc)


def init(
    path: Annotated[Path, typer.Argument(help="Where to write.")] = Path("nest.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented nest.toml with starter sources."""
    from engine.core.store import write_atomic

    if path.exists() and not force:
        raise RefusedError(f"{path} is there already: --force overwrites it")
    write_atomic(path, (Path(__file__).parent / "starter.toml").read_bytes())
    console.say(f"wrote {path}")
    next_step("nest doctor")


def show_config(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Print the configuration as it is after file, environment and defaults; sources that cannot be are refused."""
    from flows.doctor import wrong_sources

    settings = config_of(config)
    values = settings.model_dump(mode="json")
    if as_json:
        print_json(values)
    for section, content in () if as_json else sorted(values.items()):
        if isinstance(content, dict):
            for key, value in content.items():
                console.out(f"{section}.{key} = {value!r}")
        else:
            console.out(f"{section} = {content!r}")
    if wrong := list(wrong_sources(settings)):
        raise ConfigError("; ".join(wrong))


def doctor(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Check packages, config, keys, endpoint, weights, disk and server; each finding with its mend."""
    from flows.doctor import examine

    findings = examine(config)
    if as_json:
        print_json([{"state": f.state, "what": f.what, "mend": f.mend} for f in findings])
    else:
        for finding in findings:
            console.out(f"{finding.state:<5} {finding.what}" + (f"  ->  {finding.mend}" if finding.mend else ""))
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(2)
    if not as_json:
        next_step("nest refresh --limit 20")


def gc(config: ConfigOption = None, dry_run: DryRunOption = False, as_json: JsonOption = False) -> None:
    """Remove what interrupted runs left in the store, and blobs that nothing names any more."""
    from flows.housekeeping import collect_garbage

    found = collect_garbage(config_of(config).home, dry_run=dry_run)
    if as_json:
        print_json(found)
        return
    word = "would remove" if dry_run else "removed"
    console.say(f"{word} {found['rubbish']} leftovers and {found['blobs']} blobs ({found['bytes'] / 1e6:.1f} MB)")
