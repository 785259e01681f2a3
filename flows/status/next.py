"""What the maintainer does next, and the parts of the status that need our own records: reviews and pushes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import NestError
from flows.status.weeks import Week

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.snapshot.verdicts import Reviewed
    from flows.status.gather import HubState, Status


def review_of(home: Path, week: Week | None, problems: list[str]) -> Reviewed | None:
    """The review of the window's snapshot; a file that cannot be read is a problem, not the end."""
    if week is None or not (home / "reviews" / week.name).is_dir():
        return None
    from engine.snapshot.verdicts import all_of, summarise

    try:
        return summarise(all_of(home, week.name))
    except NestError as error:
        problems.append(str(error))
        return None


def hub_state(config: Config, week: Week | None, *, ask: bool) -> HubState:
    """Whether the Hub holds the very bytes of the window's snapshot: by the push's own record, or by asking."""
    from flows.status.gather import HubState

    if not config.hub.repo:
        return HubState(note="no [hub] repo, nothing is published")
    if week is None or not week.snapshot or week.pilot:
        return HubState(note="no snapshot to publish yet")
    from engine.core.store import Home
    from engine.core.windows import parse_window
    from flows.run import Run
    from flows.stages import push

    run = Run(config, Home(config.home), parse_window(week.label))
    repo = push.repository(run)
    if ask:
        return _asked(run.home.snapshot(week.name), repo)
    where = push.place(run)
    if where is not None and where.finished:
        when = datetime.fromtimestamp((where.path / "manifest.json").stat().st_mtime, UTC)
        told = where.manifest()
        held = {"held": "private until 'nest release'", "sealed": "sealed"}.get(str(told.get("state", "")), "")
        return HubState(repo, True, f"as pushed on {when:%Y-%m-%d}" + (f", {held}" if held else ""))
    return HubState(repo, False, f"{week.snapshot.get('revision')} was not pushed")


def _asked(folder: Path, repo: str) -> HubState:
    from engine.snapshot.hub_client import hub, patiently
    from engine.snapshot.hub_files import differences, read_remote
    from engine.snapshot.manifest import read_manifest
    from flows.status.gather import HubState
    from flows.wiring import hub_token

    manifest = read_manifest(folder)
    try:
        with hub(hub_token(), None) as api:
            remote = patiently(f"reading {repo}", lambda: read_remote(api, repo), tries=1)
    except NestError as error:  # the screen is shown all the same
        return HubState(repo, None, str(error))
    if remote is None:
        return HubState(repo, False, "the Hub has no such repository")
    other = differences(folder, manifest, remote)
    return HubState(repo, not other, f"asked now: {f'{len(other)} files differ' if other else 'the same bytes'}")


def next_command(status: Status, config: Config) -> str:
    """The next useful command; the first thing that needs a person, else the next step of the work."""
    week = status.week
    if not config.source:
        return "nest init"
    if week is None:
        return "nest refresh --limit 20"
    if any(days < 0 for _, days in status.keys):
        return "nest doctor"
    if status.takedowns:
        return "nest takedown --help"
    if week.pilot:
        return f"nest refresh --window {week.label}"
    if not week.snapshot and _is_thin(week):
        return f"nest status --window {week.label}"
    for other in status.weeks:
        if not other.pilot and not {"collect", "ask", "annotate", "snapshot"} <= other.done and not _is_thin(other):
            return f"nest refresh --window {other.label}"
    if status.sources and any(source.state == "red" for source in status.sources):
        return "nest sources check"
    if status.review is None or not status.review.random.judged or not status.review_is_current:
        if not _corrected(status):
            return f"nest review {week.label}"
    elif status.review.random.wrong:
        return f"nest amend {week.label} --from-review"
    if status.hub.equal is False:
        return f"nest push {week.label}"
    if "private until" in status.hub.note:
        return f"nest release {week.label}"
    if (config.home / "sealed").is_dir():
        from flows.sealed import due

        if due(config.home, now=status.now):
            return "nest unseal --due"
    if not status.scores and config.score.segmenters:
        return f"nest score {week.label}"
    from engine.core.windows import latest_window

    latest = latest_window(status.now, lag_days=config.window.lag_days).label
    return f"nest refresh --window {latest}" if latest > week.label else "nest report --all"


def _is_thin(week: Week) -> bool:
    """Whether the window came to its end with no rows to make a snapshot of."""
    return {"collect", "ask", "annotate"} <= week.done and not week.counts.get("masks")


def _corrected(status: Status) -> bool:
    """Whether the present revision is the correction that followed from the review."""
    assert status.week is not None
    before = status.week.snapshot.get("supersedes")
    return status.review is not None and before == f"{status.week.name}@{status.review.revision}"
