"""Commands that score: score and report."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Filled where scoring is wired."""
