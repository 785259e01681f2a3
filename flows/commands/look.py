"""Commands that only look: status, show, sources, segmenters, extract."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows import console
from flows.commands.common import ConfigOption, JsonOption, WindowOption, config_of, next_step, print_json

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.news.rounds import SourceHealth


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
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="With --window: the pilot of so many links.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The whole home on one screen, with the next command; or one window in detail."""
    from flows.status.show import show_status

    if limit is not None and not window:
        raise typer.BadParameter("--limit goes with --window")
    show_status(config, window, limit=limit, as_json=as_json, html=html, ask_hub=hub)


def show(
    item: Annotated[
        str, typer.Argument(help="Id of a row, a question, an article or a picture, the beginning of one, or a URL.")
    ],
    html: Annotated[Path | None, typer.Option("--html", help="Write it as a page with pictures to this file.")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """The whole story of a row or of a rejected item."""
    from flows.story.show import show_story

    show_story(config_of(config), item, as_json=as_json, html=html)


def sources(
    action: Annotated[
        str, typer.Argument(help="list, or check: ask every source once, and look at a few of its newest pages.")
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
    from datetime import UTC, datetime

    from flows.status.sources import health_of

    heard = health_of(settings.home, found, now=datetime.now(UTC))
    states = {one.source: one for one in heard.sources}
    if as_json:
        print_json([{**s.model_dump(mode="json"), "harvest": _harvest_plain(states.get(s.name))} for s in found])
        return
    rows = [["name", "type", "publisher", "harvest", "address"]]
    for s in found:
        one = states.get(s.name)
        told = "paused" if one is None else f"{one.state}: {one.detail}" if one.state in ("amber", "red") else one.state
        rows.append([s.name, s.type, s.publisher, told, s.url])
    console.out(console.table(rows) if found else "no sources")
    for begin, end in heard.gaps[-3:]:
        hours = (end - begin).total_seconds() / 3600
        console.out(f"no round from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC ({hours:.0f} hours)")
    next_step("nest sources check" if found else "nest init")


def _harvest_plain(one: SourceHealth | None) -> dict[str, str | None]:
    if one is None:
        return {"state": "paused", "detail": "", "last_new": None}
    return {"state": one.state, "detail": one.detail, "last_new": one.last_new.isoformat() if one.last_new else None}


def _check_sources(settings: Config, *, as_json: bool) -> None:
    import asyncio
    from dataclasses import asdict

    from flows.stages.sources import check_sources

    states = asyncio.run(check_sources(settings))
    if as_json:
        print_json([asdict(state) for state in states])
    else:
        rows = [["source", "state", "items", "a day", "back to", "pictures", "captions", "robots", ""]]
        for s in states:
            shares = [f"{100 * s.pictured:.0f} %", f"{100 * s.captioned:.0f} %"] if s.items else ["", ""]
            rows.append([s.name, s.state, str(s.items), f"{s.per_day}", s.oldest, *shares, s.robots, s.detail])
        console.out(console.table(rows, right=frozenset({2, 3})))
        usable = any(state.state in ("good", "warn") and state.items for state in states)
        next_step(
            "nest refresh --limit 20" if usable else "other [[source]] rows in nest.toml, then nest sources check"
        )
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
