"""Sections about the people who look after a run: reviews of rows, and when their keys run out."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from engine.core.config.sections.base import Section


class ReviewSection(Section):
    """What `nest review` shows. Nothing here changes a row."""

    NOT_IN_KEY = frozenset({"random_rows", "lowest_margins"})

    random_rows: int = Field(default=150, ge=1)
    """Rows drawn at random, from which the error is estimated; none wrong of 150 bounds it at 2 %."""
    lowest_margins: int = Field(default=50, ge=0)
    """Further rows whose masks were bound by the least lead; looked at apart, in no estimate."""


class CredentialsSection(Section):
    """When keys and tokens run out, where their providers do not say: `nest status` counts the days."""

    NOT_IN_KEY = frozenset({"expires", "warn_days"})

    expires: dict[str, date] = Field(default={})
    """Last day by name of the variable, e.g. {"OPENAI_API_KEY" = "2027-03-31", "HF_TOKEN" = "2027-01-15"}."""
    warn_days: int = Field(default=14, ge=0)
    """From so many days before, `nest status` shows it in amber."""
