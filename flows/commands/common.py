"""What all commands share: options, opening a run, and words for the last line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows import console

if TYPE_CHECKING:
    from engine.core.config import Config

WindowOption = Annotated[
    str | None,
    typer.Option(
        "--window",
        "-w",
        help="Window: 250323_250411, 2026-W48 or 2026-11-23..2026-11-29; default: the latest week that ended two "
        "days ago or more; for a pilot (--limit) the seven days up to yesterday.",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="Configuration file; default: ./nest.toml if it is there.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, for programs.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]
AllowPortableOption = Annotated[
    bool, typer.Option("--allow-portable", help="Push rows made by the template writer or the portable annotator.")
]
ReviseOption = Annotated[
    bool, typer.Option("--revise", help="Replace a finished snapshot of other input or settings by its next revision.")
]


def config_of(path: Path | None, overrides: dict[str, Any] | None = None) -> Config:
    """The configuration; imported here, since reading the settings' descriptions costs help its half second."""
    from engine.core.config import load_config

    return load_config(path, overrides=overrides)


def print_json(value: object) -> None:
    console.out(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def next_step(text: str) -> None:
    """The last line: the next useful command."""
    console.say(f"next: {text}")
