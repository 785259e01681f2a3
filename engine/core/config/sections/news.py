"""Sections about where news comes from: the window, the sources, and how they are fetched, read and filtered."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from engine.core.config.sections.base import Section


class WindowSection(Section):
    """Which window a refresh without `--window` takes."""

    lag_days: int = Field(default=2, ge=0, le=60)
    """Days to wait after a window's end for late articles."""


class SourceSection(Section):
    """One `[[source]]` row: where links come from. What else a type needs is in `options`."""

    name: str = Field(min_length=1)
    """A short unique name, shown in funnels."""
    type: str = "feed"
    """feed, sitemap, google_news, gdelt, archive, or a type of a plugin."""
    url: str = ""
    """Address of the feed, the sitemap or the archive."""
    publisher: str = ""
    """The publisher's name, if the pages do not say it."""
    language: str = ""
    """BCP 47 language of the source, e.g. en."""
    section: str = ""
    """Section of the source, used to decide the domain."""
    credible_feed_date: bool = True
    """Whether the feed's own dates may count as a witness."""
    paused: bool = False
    """Leave the source out for now."""
    options: dict[str, Any] = Field(default={})
    """What the source's type needs beside that; see its documentation."""


class CollectSection(Section):
    """Fetching, reading and filtering news."""

    NOT_IN_KEY = frozenset(
        {
            "processes",
            "max_connections",
            "per_host",
            "per_host_delay_s",
            "timeout_s",
            "retries",
            "max_retry_after_s",
            "user_agent",
            "resolve",
            "allow_hosts",
        }
    )

    user_agent: str = "nest-data-engine/0.1 (+research benchmark; set [collect] user_agent to your contact)"
    """Honest agent string; put a contact address in."""
    processes: int = Field(default=1, ge=1, le=64)
    """Processes that read pages and pictures; 1 reads in the collecting process itself. Each takes 150 to 200 MB."""
    max_connections: int = Field(default=32, ge=1)
    """Connections at a time."""
    per_host: int = Field(default=2, ge=1)
    """Connections at a time to one host."""
    per_host_delay_s: float = Field(default=1.0, ge=0)
    """Seconds between two requests to one host; a longer crawl-delay in robots.txt wins."""
    timeout_s: float = Field(default=30.0, gt=0)
    """Seconds for one whole request."""
    retries: int = Field(default=3, ge=0)
    """Further tries after a failure that may pass."""
    max_retry_after_s: float = Field(default=60.0, ge=0)
    """Longest wait a server may ask for (Retry-After) before its page is given up for this run."""
    resolve: dict[str, str] = Field(default={})
    """Addresses for host names ("herald.example" = "127.0.0.1:8080"), as curl's --resolve; such a host must also
    stand in allow_hosts if the address is private."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts (name or name:port) that may lie at private or loopback addresses."""
    obey_robots: bool = True
    """Follow robots.txt."""
    obey_ai_opt_out: bool = True
    """Follow the signs by which publishers decline use for AI."""
    min_image_side_px: int = Field(default=200, ge=16)
    """Smallest width and height of an image."""
    min_text_chars: int = Field(default=250, ge=0)
    """Shortest article text."""
    max_images_per_article: int = Field(default=6, ge=1)
    """Most images kept from one article."""
    require_caption: bool = True
    """Leave out images of which nothing is said."""
    near_duplicate_bits: int = Field(default=6, ge=0, le=32)
    """Images whose 64-bit perceptual hashes differ in at most so many bits are one photo."""
    limit: int | None = Field(default=None, ge=1)
    """Most articles of a run; for pilots."""
