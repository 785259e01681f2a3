"""Commands for setting up and keeping house: init, config, doctor, gc."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.core.errors import ConfigError, RefusedError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json

if TYPE_CHECKING:
    from flows.stages.sources import SourceState


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.command("config")(show_config)
    app.command()(doctor)
    app.command()(gc)


def init(
    path: Annotated[Path, typer.Argument(help="Where to write.")] = Path("nest.toml"),
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="Address of a feed or news sitemap instead of the starters; may be given again."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="A host of yours at a private or loopback address that may be fetched; again for more."
        ),
    ] = None,
    portable: Annotated[
        bool, typer.Option("--portable", help="Masks and scores by the CPU models: a trial without GPU and weights.")
    ] = False,
    no_check: Annotated[
        bool, typer.Option("--no-check", help="Write the starter sources without asking them.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented nest.toml with starter sources, or your own, each asked as it is added."""
    from engine.core.config import load_config
    from engine.core.store import write_atomic
    from flows.first import ask, find_sources, starter_text, table, with_hosts, with_portable, with_sources

    if path.exists() and not force:
        raise RefusedError(f"{path} is there already: --force overwrites it")
    text = with_hosts(starter_text(), allow_host or ())
    if portable:
        text = with_portable(text)
    # the environment counts (proxies, addresses for host names), a nest.toml that is to be replaced does not
    with tempfile.TemporaryDirectory(prefix="nest-init-") as work:
        fresh = Path(work) / "nest.toml"
        fresh.write_text(text, encoding="utf-8")
        settings = load_config(fresh)
    states: list[SourceState] = []
    if source:
        rows, states = find_sources(source, settings)
        if not rows:
            told = "; ".join(f"{state.name}: {state.detail}" for state in states)
            raise ConfigError(
                f"none of the {len(source)} addresses answered as a feed or a news sitemap ({told}); "
                "a host of your own at a private address is permitted by --allow-host HOST"
            )
        text = with_sources(text, rows)
    elif not no_check:
        states = ask(settings.source, settings)
    write_atomic(path, text.encode())
    if states:
        console.say(console.table(table(states), right=frozenset({2, 3})))
    bad = [state.name for state in states if state.state == "bad"]
    if bad and source:
        console.say(f"left out, since they did not answer as a source: {', '.join(bad)}")
    elif bad:
        console.say(
            "sources that did not answer now are in the file all the same: 'nest sources check' asks them again"
        )
    console.say(f"wrote {path}")
    next_step("nest doctor")


def show_config(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Print the configuration as it is after file, environment and defaults; sources that cannot be are refused."""
    from flows.doctor.sources import wrong_sources

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
    from flows.doctor.examine import examine

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
