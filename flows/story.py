"""`nest show`: everything the store knows of one item, stage by stage, or where and why it was left out."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from flows import console
from flows.commands.common import print_json

KINDS = ("collect", "ask", "annotate")


def show_story(home: Path, item: str, *, as_json: bool = False) -> None:
    """Print the story of a row, question, article, image or URL. Raises `ConfigError` with the nearest ids."""
    story = tell(home, item)
    if as_json:
        print_json(story)
        return
    for chapter in story["found"]:
        console.out(f"{chapter['window']}  {chapter['stage']}  {chapter['key']}")
        console.out(_indent(chapter["record"]))
    for chapter in story["rejected"]:
        record = chapter["record"]
        console.out(f"{chapter['window']}  {chapter['stage']}  left out: {record['code']}  {record['detail']}")
        console.out(f"  {record['item']}" + (f"  (of {record['parent']})" if record["parent"] else ""))


def tell(home: Path, item: str) -> dict[str, Any]:
    """The records of the item, those it came from (its question, its article) and those made of it, by stage; and
    what was left out that belongs to it."""
    if not item.strip():
        raise ConfigError("say which row, article or picture: the id is empty")
    records = list(_records(home))
    kept = [chapter for chapter in records if "code" not in chapter["record"]]
    start = {item} | _questions_of_row(home, item, kept)
    below = _closure(kept, start, down=True)
    above = _closure(kept, start, down=False)
    found = [chapter for chapter in kept if _own(chapter["record"]) & (below | above)]
    rejected = [
        chapter
        for chapter in records
        if "code" in chapter["record"] and (chapter["record"]["item"] in below or chapter["record"]["parent"] in start)
    ]
    if not found and not rejected:
        known = sorted({name for chapter in records for name in _own(chapter["record"])} | start - {item})
        near = difflib.get_close_matches(item, known, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(near)}" if near else "nothing is like it"
        raise ConfigError(f"'{item}' is in no finished stage under {home}: {hint}")
    order = {stage: number for number, stage in enumerate(KINDS)}
    found.sort(key=lambda chapter: (chapter["window"], order[chapter["stage"]]))
    return {"item": item, "found": found, "rejected": rejected}


def _closure(records: list[dict[str, Any]], start: set[str], *, down: bool) -> set[str]:
    """Names reached from `start`: children (records whose parents are reached) or parents of reached records."""
    reached = set(start)
    for _ in KINDS:  # a chain is at most as long as there are stages
        for chapter in records:
            own, parents = _own(chapter["record"]), _parents(chapter["record"])
            if down and parents & reached:
                reached |= {str(chapter["record"]["id"])}
            elif not down and own & reached:
                reached |= parents
                if str(chapter["record"].get("id")):
                    reached.add(str(chapter["record"]["id"]))
    return reached


def _records(home: Path) -> Iterator[dict[str, Any]]:
    for stage in KINDS:
        for manifest in sorted(home.glob(f"windows/*/{stage}/*/manifest.json")):
            for name in ("part-00000.jsonl", "rejected.jsonl"):
                with (manifest.parent / name).open(encoding="utf-8") as handle:
                    for line in handle:
                        place = {"window": manifest.parts[-4], "stage": stage, "key": manifest.parts[-2]}
                        yield {**place, "record": json.loads(line)}
            found = manifest.parent / "found" / "rejected.jsonl"
            if found.is_file():
                with found.open(encoding="utf-8") as handle:
                    for line in handle:
                        place = {"window": manifest.parts[-4], "stage": "collect", "key": manifest.parts[-2]}
                        yield {**place, "record": json.loads(line)}


def _own(record: dict[str, Any]) -> set[str]:
    """Names by which a record may be asked for: its id, its addresses, its pictures."""
    found = {str(record[name]) for name in ("id", "url", "canonical_url", "item") if record.get(name)}
    for image in record.get("images", ()):
        if isinstance(image, dict):
            found |= {str(image[name]) for name in ("url", "sha256") if image.get(name)}
    return found


def _parents(record: dict[str, Any]) -> set[str]:
    return {str(record[name]) for name in ("question_id", "article_id") if record.get(name)}


def _questions_of_row(home: Path, item: str, records: list[dict[str, Any]]) -> set[str]:
    """A published row has an id of its own: its question is found by its words."""
    import pyarrow.parquet as pq

    for path in sorted(home.glob("snapshots/NEST_*/data/*.parquet")):
        for row in pq.read_table(path, columns=["id", "question", "answer"]).to_pylist():
            if row["id"] == item:
                wanted = (row["question"], row["answer"])
                asked = [chapter["record"] for chapter in records if chapter["stage"] == "ask"]
                return {str(r["id"]) for r in asked if (r["question"], r["answer"]) == wanted}
    return set()


def _indent(record: dict[str, Any]) -> str:
    lines = []
    for name, value in record.items():
        if name in ("schema_version",) or value in ("", [], None):
            continue
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
        lines.append(f"  {name:<16} {text[:300]}{' ...' if len(text) > 300 else ''}")
    return "\n".join(lines)
