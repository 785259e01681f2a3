"""One run: the configuration, the home and the window, opened the same way by the command and by workers.

A run is named by plain values (window, config path, overrides), which is what Prefect keeps as parameters.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.core.config import Config, load_config
from engine.core.errors import ConfigError, TerminalError
from engine.core.pilots import pilot_name
from engine.core.schema import Window, canonical_json
from engine.core.store import Home, write_atomic
from engine.core.windows import latest_days, latest_window, parse_window, require_closed


@dataclass(frozen=True, slots=True)
class Run:
    """What a run works with. `revision` is 1 until somebody collects the window anew on purpose; `revise` allows
    a finished snapshot to be replaced by its next revision."""

    config: Config
    home: Home
    window: Window
    revision: int = 1
    revise: bool = False

    @property
    def weights(self) -> Path:
        """Folder of weight files."""
        return weights_of(self.config, self.home)

    @property
    def references(self) -> Path | None:
        """Folder of reference pictures, if the configuration names one."""
        told = self.config.annotate.references
        return self.config.resolve(told) if told else None

    @property
    def snapshot_name(self) -> str:
        """A pilot with a limit never takes the place of the whole week."""
        return pilot_name(self.window.name, self.config.collect.limit)


def weights_of(config: Config, home: Home) -> Path:
    """Folder of weight files: the one that the configuration names, else the home's own."""
    told = config.annotate.weights_dir
    return config.resolve(told) if told else home.weights


def open_run(
    window: str | None,
    *,
    config_path: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    revise: bool = False,
    now: datetime | None = None,
) -> Run:
    """Read the config, choose the window and refuse one that is not over. `now` is for schedules and tests."""
    config = load_config(config_path, overrides=overrides)
    return run_for(config, window, revise=revise, now=now)


def run_for(config: Config, window: str | None, *, revise: bool = False, now: datetime | None = None) -> Run:
    """The run of a window under a config that is already read."""
    instant = now or datetime.now(UTC)
    if window is not None and not window.strip():
        raise ConfigError("the window is empty: leave --window out for the latest finished week")
    if window:
        chosen = parse_window(window)
    elif config.collect.limit is not None:
        # a pilot looks at what the sources show now: the week that a refresh takes may have left their feeds already
        chosen = latest_days(instant)
    else:
        chosen = latest_window(instant, lag_days=config.window.lag_days)
    require_closed(chosen, instant)
    home = Home(config.home)
    return Run(config, home, chosen, _revision(home, chosen), revise)


def _revision(home: Home, window: Window) -> int:
    path = home.window(window) / "revision.json"
    if not path.is_file():
        return 1
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["revision"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TerminalError(f'{path} cannot be read ({error}): it should hold {{"revision": 2}} or so') from error


def next_revision(run: Run) -> Run:
    """Declare that the window is to be collected anew: the following stages get keys of their own."""
    number = run.revision + 1
    write_atomic(run.home.window(run.window) / "revision.json", canonical_json({"revision": number}).encode())
    return replace(run, revision=number)
