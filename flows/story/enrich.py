"""What lies beside the stages and belongs to a story: prompts and replies, predictions, verdicts, errata."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.story.gather import Story

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.core.protocols import ChatReply, ChatRequest
    from engine.llm.plan import PlanningChat

#: Most prompts that are looked up for one story: an article has few pictures, a page of pictures has many articles.
MOST = 8


def enrich(story: Story, config: Config) -> Story:
    """The story with everything beside; what is not there stays empty."""
    story.replies = list(replies(story, config))
    ids = {row.id for row in story.rows}
    story.predictions = list(predictions(config.home, story, ids))
    story.verdicts = [line for line in _all_lines(config.home, "reviews/*/*.jsonl") if line.get("sample_id") in ids]
    for folder in {row.folder for row in story.rows}:
        told = _json(folder / "snapshot.json")
        story.errata += [
            line for line in told.get("errata", ()) if line["sample_id"] in ids and line not in story.errata
        ]
    return story


def replies(story: Story, config: Config) -> Iterator[dict[str, Any]]:
    """Prompts of the story's articles with the replies that were kept, by writing them again from the cache alone.

    Only where the present configuration is the one that asked; otherwise the prompts would be other ones.
    """
    from engine.core.errors import NestError
    from engine.core.schema import Article
    from engine.core.windows import parse_window
    from engine.questions.writers import uses_chat
    from flows.run import run_for
    from flows.stages import ask

    if not uses_chat(config.ask):
        return
    keys = {(chapter.window, chapter.key) for chapter in story.chapters if chapter.kind == "question"}
    keys |= {(chapter.window, chapter.key) for chapter in story.rejected if chapter.stage == "ask"}
    for chapter in [c for c in story.chapters if c.kind == "article"][:MOST]:
        try:
            place = ask.place(run_for(config, parse_window(chapter.window).label))
        except NestError:
            continue
        if place is None or (keys and (chapter.window, place.path.name) not in keys):
            continue
        yield from _again(Article.read(chapter.record), config)


def _again(article: Any, config: Config) -> list[dict[str, Any]]:
    import asyncio

    from engine.core.errors import NestError
    from engine.core.store import Home
    from engine.llm.plan import Deferred, PlanningChat
    from engine.questions.writers import make_writer

    home = Home(config.home)
    kept = _Kept(PlanningChat(config.llm, cache=home.cache("llm")))
    pictures = home.blobs if config.llm.sees_images else None

    async def work() -> None:
        try:
            await make_writer(config.ask, chat=kept, blobs=pictures).write(article, config.ask)
        except (Deferred, NestError):
            return  # a reply is not there any more: what was found is told

    asyncio.run(work())
    return kept.told


class _Kept:
    """A chat that answers from the cache and remembers what was said."""

    def __init__(self, chat: PlanningChat) -> None:
        self.name = chat.name
        self.told: list[dict[str, Any]] = []
        self._chat = chat

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await self._chat.complete(request)
        self.told.append(
            {
                "model": self.name,
                "purpose": request.purpose,
                "system": request.system,
                "user": request.user,
                "pictures": len(request.images),
                "status": reply.status,
                "text": reply.text,
            }
        )
        return replace(reply)


def predictions(home: Path, story: Story, ids: set[str]) -> Iterator[dict[str, Any]]:
    """Stored predictions for the story's rows, with their IoU from the reports of the same snapshot."""
    for snapshot in sorted({row.snapshot for row in story.rows}):
        overlaps = _overlaps(home, snapshot, ids)
        for path in sorted((home / "predictions" / snapshot).glob("*/*/part-00000.jsonl")):
            name = path.parts[-3].replace("+", ":")
            for line in _lines(path):
                if line.get("sample_id") in ids:
                    told = {key: line.get(key) for key in ("sample_id", "answer", "text", "failures", "trace", "masks")}
                    iou = overlaps.get((name, str(line["sample_id"])))
                    yield {"snapshot": snapshot, "segmenter": name, "key": path.parts[-2], "iou": iou, **told}


def _overlaps(home: Path, snapshot: str, ids: set[str]) -> dict[tuple[str, str], list[float | None]]:
    found: dict[tuple[str, str], list[float | None]] = {}
    for path in sorted((home / "reports" / snapshot).glob("*/report.json")):
        report = _json(path)
        samples = [sample["id"] for sample in report.get("samples", ())]
        first = (report.get("truths") or [{}])[0].get("name")
        for units in report.get("units", ()):
            if units["truth"] != first:
                continue
            own: dict[str, list[float | None]] = {}
            for place, iou in zip(units["sample"], units["iou"], strict=True):
                if samples[place] in ids:
                    own.setdefault(samples[place], []).append(iou)
            for name, values in own.items():
                found[units["segmenter"], name] = values
    return found


def _all_lines(home: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(home.glob(pattern)):
        yield from _lines(path)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8", errors="replace") as handle:
        for line in handle:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
