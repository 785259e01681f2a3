"""`nest show`: a story on the terminal, as JSON, or as one page with pictures."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows import console
from flows.commands.common import print_json
from flows.story.enrich import enrich
from flows.story.gather import Chapter, Story, gather
from flows.story.words import Part, parts

if TYPE_CHECKING:
    from engine.core.config import Config

#: Longest text of one line on the terminal.
SHORT, FOLDED = 300, 600


def show_story(config: Config, item: str, *, as_json: bool = False, html: Path | None = None) -> None:
    """Tell the story of a row, question, article, picture or address. Raises `ConfigError` with the nearest names."""
    story = enrich(gather(config.home, item), config)
    if html is not None:
        from engine.core.store import Home, write_atomic
        from flows.story.page import page

        write_atomic(html, page(story, blobs=Home(config.home).blobs).encode())
        console.say(f"wrote {html}")
    elif as_json:
        print_json(plain(story))
    else:
        console.out("\n".join(text(part) for part in parts(story)))


def text(part: Part) -> str:
    """A part in plain text; nothing from outside speaks to the terminal."""
    lines = [_clean(part.title)]
    lines += [f"  {label:<11} {_cut(value, SHORT)}" for label, value in part.lines]
    lines += [f"  {label:<11} {_cut(value, FOLDED)}" for label, value in part.folded]
    return "\n".join(lines)


def plain(story: Story) -> dict[str, Any]:
    """The story as JSON values: records as they lie in the store."""
    found = [_chapter(chapter) for chapter in story.chapters if chapter.kind != "link"]
    return {
        "item": story.item,
        "links": [_chapter(chapter) for chapter in story.chapters if chapter.kind == "link"],
        "found": found,
        "rejected": [_chapter(chapter) for chapter in story.rejected],
        "rows": [{**asdict(row), "folder": str(row.folder)} for row in story.rows],
        "replies": story.replies,
        "predictions": story.predictions,
        "verdicts": story.verdicts,
        "errata": story.errata,
    }


def _chapter(chapter: Chapter) -> dict[str, Any]:
    return {"window": chapter.window, "stage": chapter.stage, "key": chapter.key, "record": chapter.record}


def _cut(value: str, most: int) -> str:
    clean = _clean(value)
    return clean if len(clean) <= most else clean[: most - 4] + " ..."


def _clean(value: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in value).split())
