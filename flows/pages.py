"""`nest extract`: pages from files or URLs through the same extraction that the collect stage uses."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

from engine.core.config import load_config
from engine.core.errors import ConfigError, NestError
from engine.core.schema import canonical_json
from engine.core.store import Home
from flows import console


def extract_pages(
    pages: list[str], *, url_from: Path | None = None, config: Path | None = None, as_json: bool = False
) -> None:
    """One JSON line per page on stdout (or a short text form); a page that cannot be read is a line on stderr, and
    the command then ends with exit code 1."""
    from engine.news.extract import read_article

    names = _names(url_from)
    failed = 0
    for page in pages:
        try:
            body, url = _read(page, names, config)
        except NestError as error:
            console.say(f"nest: {page}: {error}")
            failed += 1
            continue
        article, images = read_article(body, url)
        if as_json:
            told = {**article.model_dump(mode="json"), "images": [image.model_dump(mode="json") for image in images]}
            console.out(canonical_json(told))
        else:
            sure = "certain" if article.date_certain else "not certain"
            title, text = (_printable(value) for value in (article.title, article.text[:200]))
            console.out(f"{title}\n  {article.published_at} ({sure})  {len(images)} images")
            console.out(f"  {text}")
    if failed:
        raise NestError(f"{failed} of {len(pages)} pages could not be read")


def _names(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path} does not map file names to URLs")
    return {str(name): str(url) for name, url in found.items()}


def _read(page: str, names: dict[str, str], config: Path | None) -> tuple[bytes, str]:
    if page.startswith(("http://", "https://")):
        return asyncio.run(_fetch(page, config)), page
    path = Path(page)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}") from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError) as error:
            raise ConfigError(f"is not a whole gzip file: {error}") from error
    url = names.get(path.name) or names.get(path.name.removesuffix(".gz")) or names.get(path.stem.split(".")[0]) or ""
    return data, url


async def _fetch(url: str, config: Path | None) -> bytes:
    from engine.web.client import WebClient
    from engine.web.errors import FetchError

    settings = load_config(config)
    async with WebClient(settings.collect, cache=Home(settings.home).cache("http")) as client:
        try:
            return (await client.fetch(url, kind="page")).body
        except FetchError as error:
            raise NestError(f"{error.code.value}: {error.detail}") from error


def _printable(text: str) -> str:
    """The text without control characters: a page must not speak to the terminal."""
    return "".join(char if char.isprintable() or char == " " else " " for char in text)
