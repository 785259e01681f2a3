"""The records that belong to one item: what it came from, what was made of it, and where it was left out.

An item is a row, an article, a question, a picture, or an address. Only windows whose files hold its name are parsed,
so that years of weeks are looked through as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from flows.status.weeks import read_lines

STAGES = ("collect", "ask", "annotate", "snapshot")
#: Rows that are named at most where a word fits several.
SHOWN = 20
DATA, REJECTED = "part-00000.jsonl", "rejected.jsonl"


@dataclass(frozen=True, slots=True)
class Chapter:
    """One record of a stage, with the window and the key under which it lies. `kind` is link, article, question,
    annotation or rejected."""

    window: str
    stage: str
    key: str
    kind: str
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A published row: which snapshot folder holds it (revisions put aside too), and its question and answer."""

    snapshot: str
    revision: str
    folder: Path
    id: str
    question: str
    answer: str


@dataclass(slots=True)
class Story:
    """Everything the home knows of an item. `replies` are prompts with the model's replies, newest last; `predictions`
    one object per segmenter; `verdicts` what people said; `errata` what later revisions changed."""

    item: str
    chapters: list[Chapter] = field(default_factory=list)
    rejected: list[Chapter] = field(default_factory=list)
    rows: list[RowPlace] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    predictions: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    errata: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Records of a kind in order, each once."""
        return [chapter.record for chapter in self.chapters_of(kind)]

    def chapters_of(self, kind: str) -> list[Chapter]:
        """The same with where they lie; of equal records the first."""
        found: list[Chapter] = []
        for chapter in self.chapters:
            if chapter.kind == kind and all(chapter.record != other.record for other in found):
                found.append(chapter)
        return found

    def made_by(self, chapter: Chapter) -> str:
        """The window and the settings' key that a record is of, where the story holds more than one of its stage:
        a pilot and the whole week, two windows, two configurations. Else empty."""
        runs = {(one.window, one.key) for one in (*self.chapters, *self.rejected) if one.stage == chapter.stage}
        return f"window {chapter.window}, {chapter.stage} {chapter.key[:8]}" if len(runs) > 1 else ""


def gather(home: Path, item: str) -> Story:
    """The story of an item, or of the only row whose answer has this word. Raises `ConfigError` with the rows that
    have it if there are several, and with the nearest names for an unknown one."""
    from flows.story.nearest import nearest, only_one, rows_about

    wanted = item.strip()
    if not wanted:
        raise ConfigError("say which row, article or picture: the id is empty")
    story = _told(home, wanted)
    if story is None:
        full = only_one(home, wanted)
        story = _told(home, full) if full else None
    if story is None:
        about = rows_about(home, wanted)
        if len(about) > 1:
            told = ", ".join(f"{name} ({answer})" for name, answer in list(about.items())[:SHOWN])
            more = f" and {len(about) - SHOWN} more" if len(about) > SHOWN else ""
            raise ConfigError(f"'{wanted}' is in the answers of {len(about)} rows, name one: {told}{more}")
        story = _told(home, next(iter(about))) if about else None
    if story is None:
        raise ConfigError(f"'{wanted}' is in no finished stage under {home}: {nearest(home, wanted)}")
    return story


def records(home: Path, window: str) -> Iterator[Chapter]:
    """All records of the finished stages of a window."""
    for stage in STAGES:
        for manifest in sorted(home.glob(f"windows/{window}/{stage}/*/manifest.json")):
            folder = manifest.parent
            kind = {"collect": "article", "ask": "question", "annotate": "annotation"}.get(stage, "")
            yield from _lines(folder / DATA, window, stage, folder.name, kind)
            yield from _lines(folder / REJECTED, window, stage, folder.name, "rejected")
            yield from _lines(folder / "found" / DATA, window, stage, folder.name, "link")
            yield from _lines(folder / "found" / REJECTED, window, stage, folder.name, "rejected")


def names_of(chapter: Chapter) -> set[str]:
    """Names by which a record may be asked for: its id, its addresses, its pictures."""
    record = chapter.record
    found = {str(record[name]) for name in ("id", "url", "canonical_url", "item") if record.get(name)}
    if chapter.kind == "article":
        for image in record.get("images", ()):
            found |= {str(image[name]) for name in ("url", "sha256") if image.get(name)}
    return found


def row_places(home: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Snapshot folders of the home, present ones first, with their manifests."""
    for path in [*sorted(home.glob("snapshots/NEST_*")), *sorted(home.glob("snapshots/.superseded/NEST_*"))]:
        try:
            yield path, json.loads((path / "snapshot.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue


def rows_named(home: Path, item: str) -> list[RowPlace]:
    """Rows with this id, in all snapshots."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for folder, manifest in row_places(home):
        for path in sorted((folder / "data").glob("*.parquet")):
            try:
                table = pq.read_table(path, columns=["id", "question", "answer"], filters=[("id", "=", item)])
            except (OSError, pa.ArrowException):
                continue  # 'nest verify' says what is wrong with it
            for row in table.to_pylist():
                place = RowPlace(manifest["name"], manifest["revision"], folder, item, row["question"], row["answer"])
                found.append(place)
    return found


def _told(home: Path, item: str) -> Story | None:
    rows = rows_named(home, item)
    needles = [_needle(item), *(_needle(row.question) for row in rows)]
    windows = [
        path.name
        for path in sorted(home.glob("windows/*"))
        if any(_holds(file, needles) for file in path.rglob("*.jsonl") if "shards" not in file.parts)
    ]
    chapters = [chapter for window in windows for chapter in records(home, window)]
    asked = {(row.question, row.answer) for row in rows}
    start = {item} | {
        str(c.record["id"])
        for c in chapters
        if c.kind == "question" and (c.record["question"], c.record["answer"]) in asked
    }
    kept = [chapter for chapter in chapters if chapter.kind != "rejected"]
    below, above = _closure(kept, start, down=True), _closure(kept, start, down=False)
    story = Story(item)
    story.chapters = [chapter for chapter in kept if names_of(chapter) & (below | above)]
    story.rejected = [
        chapter
        for chapter in chapters
        if chapter.kind == "rejected" and (chapter.record["item"] in below or chapter.record["parent"] in below)
    ]
    if not story.chapters and not story.rejected and not rows:
        return None
    order = {stage: number for number, stage in enumerate(STAGES)}
    kinds = ("link", "article", "question", "annotation")
    story.chapters.sort(key=lambda c: (c.window, order[c.stage], kinds.index(c.kind)))
    story.rows = rows or _rows_of(home, story)
    return story


def _rows_of(home: Path, story: Story) -> list[RowPlace]:
    """Rows that were made of the questions of a story."""
    from engine.core.schema import Article, Question
    from engine.snapshot.samples import sample_id

    articles = {record["id"]: record for record in story.of("article")}
    found = []
    for question in story.of("question"):
        article = articles.get(question["article_id"])
        if article is not None:
            found += rows_named(home, sample_id(Article.read(article), Question.read(question)))
    return found


def _closure(chapters: list[Chapter], start: set[str], *, down: bool) -> set[str]:
    """Names reached from `start`: children (records whose parents are reached) or parents of reached records."""
    reached = set(start)
    for _ in STAGES:  # a chain is at most as long as there are stages
        for chapter in chapters:
            own = names_of(chapter)
            parents = {str(chapter.record[name]) for name in ("question_id", "article_id") if chapter.record.get(name)}
            if chapter.kind == "article" and own & reached:
                # its link has the address, its questions have the id
                reached |= {str(chapter.record[name]) for name in ("id", "url", "canonical_url")}
            if down and parents & reached:
                reached.add(str(chapter.record["id"]))
            elif not down and own & reached:
                reached |= parents
                if chapter.record.get("id"):
                    reached.add(str(chapter.record["id"]))
    return reached


def _needle(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()


def _holds(path: Path, needles: list[bytes]) -> bool:
    try:
        data = path.read_bytes()
    except OSError:
        return False
    return any(needle in data for needle in needles)


def _lines(path: Path, window: str, stage: str, key: str, kind: str) -> Iterator[Chapter]:
    for record in read_lines(path):
        yield Chapter(window, stage, key, "rejected" if "code" in record else kind, record)
