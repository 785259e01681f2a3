"""Commands that only look: status, show, sources, segmenters, extract."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows import console
from flows.commands.common import ConfigOption, JsonOption, WindowOption, config_of, next_step, print_json

if TYPE_CHECKING:
    from engine.core.config import Config


def register(app: typer.Typer) -> None:
    app.command()(status)
    app.command()(show)
    app.command()(sources)
    app.command()(segmenters)
    app.command()(extract)


def status(
    window: WindowOption = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write it as a static page to this file.")] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Ask the Hub whether it holds the same bytes.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The whole home on one screen, with the next command; or one window in detail."""
    from flows.status import show_status

    show_status(config, window, as_json=as_json, html=html, ask_hub=hub)


def show(
    item: Annotated[str, typer.Argument(help="Id of a row, a question or an article, or a URL.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The whole story of a row or of a rejected item."""
    from flows.story import show_story

    show_story(config_of(config).home, item, as_json=as_json)


def sources(
    action: Annotated[
        str, typer.Argument(help="list, or check: ask every source once, without fetching articles.")
    ] = "list",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the configured sources, or try them."""
    settings = config_of(config)
    if action == "check":
        _check_sources(settings, as_json=as_json)
        return
    if action != "list":
        raise typer.BadParameter(f"'{action}' is neither list nor check")
    found = settings.source
    if as_json:
        print_json([source.model_dump(mode="json") for source in found])
        return
    from datetime import UTC, datetime

    from engine.core.store import Home
    from engine.news.harvest import health

    states = {h.source: h for h in health(Home(settings.home).harvest, [s.name for s in found], now=datetime.now(UTC))}
    rows = [["name", "type", "publisher", "harvest", "address"]]
    for s in found:
        told = "paused" if s.paused else states[s.name].state
        rows.append([s.name, s.type, s.publisher, told, s.url])
    console.out(console.table(rows) if found else "no sources")
    next_step("nest sources check" if found else "nest init")


def _check_sources(settings: Config, *, as_json: bool) -> None:
    import asyncio
    from dataclasses import asdict

    from flows.stages.sources import check_sources

    states = asyncio.run(check_sources(settings))
    if as_json:
        print_json([asdict(state) for state in states])
    else:
        rows = [["source", "state", "items", "a day", "back to", "pictures", "captions", ""]]
        for s in states:
            shares = [f"{100 * s.pictured:.0f} %", f"{100 * s.captioned:.0f} %"] if s.items else ["", ""]
            rows.append([s.name, s.state, str(s.items), f"{s.per_day}", s.oldest, *shares, s.detail])
        console.out(console.table(rows, right=frozenset({2, 3})))
        next_step("nest refresh --limit 20")
    if any(state.state == "bad" for state in states):
        raise typer.Exit(1)


def segmenters(as_json: JsonOption = False) -> None:
    """List the segmenters and what each needs."""
    from inference.segmenters.registry import known

    found = known()
    if as_json:
        print_json([{"name": info.name, "needs": info.needs, "about": info.about} for info in found])
        return
    console.out(console.table([["name", "needs", "what it is"]] + [[i.name, i.needs, i.about] for i in found]))


def extract(
    pages: Annotated[list[str], typer.Argument(help="Files (may be gzipped) or URLs of pages.")],
    url_from: Annotated[
        Path | None, typer.Option("--url-from", help="JSON file that maps file names to their URLs.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print what the engine reads in a page: one Article per line."""
    from flows.pages import extract_pages

    extract_pages(pages, url_from=url_from, config=config, as_json=as_json)
