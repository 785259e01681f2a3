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
    """All records that name the item, and those that they name in turn, by stage."""
    wanted = {item} | _row_names(home, item)
    records = list(_records(home))
    for _ in range(3):  # a row names its question, the question its article; three rounds close the chain
        for chapter in records:
            record = chapter["record"]
            mine = _ids(record)
            if mine & wanted and "code" not in record:
                wanted |= {str(record[name]) for name in ("question_id", "article_id", "id") if record.get(name)}
    found, rejected = [], []
    for chapter in records:
        record = chapter["record"]
        if "code" in record:
            if record["item"] in wanted or record["parent"] in wanted:
                rejected.append(chapter)
        elif str(record.get("id")) in wanted or item in _ids(record):
            found.append(chapter)
    if not found and not rejected:
        known = sorted({name for chapter in records for name in _ids(chapter["record"])})
        near = difflib.get_close_matches(item, known, n=3, cutoff=0.5)
        hint = f"the nearest are {', '.join(near)}" if near else "nothing is like it"
        raise ConfigError(f"'{item}' is in no finished stage under {home}: {hint}")
    order = {stage: number for number, stage in enumerate(KINDS)}
    found.sort(key=lambda chapter: (chapter["window"], order[chapter["stage"]]))
    return {"item": item, "found": found, "rejected": rejected}


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


def _ids(record: dict[str, Any]) -> set[str]:
    names = ("id", "question_id", "article_id", "url", "canonical_url", "item", "parent")
    found = {str(record[name]) for name in names if record.get(name)}
    for image in record.get("images", ()):
        if isinstance(image, dict):
            found |= {str(image[name]) for name in ("url", "sha256", "image") if image.get(name)}
        else:
            found.add(str(image))
    return found


def _row_names(home: Path, item: str) -> set[str]:
    """A published row's id is not the question's: the provenance of the snapshots knows both."""
    import pyarrow.parquet as pq

    for path in sorted(home.glob("snapshots/NEST_*/provenance/*.parquet")):
        names = set(pq.read_schema(path).names)
        wanted = [name for name in ("id", "question_id", "article_url") if name in names]
        for row in pq.read_table(path, columns=wanted).to_pylist():
            if row["id"] == item:
                return {str(value) for value in row.values() if value}
    return set()


def _indent(record: dict[str, Any]) -> str:
    lines = []
    for name, value in record.items():
        if name in ("schema_version",) or value in ("", [], None):
            continue
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
        lines.append(f"  {name:<16} {text[:300]}{' ...' if len(text) > 300 else ''}")
    return "\n".join(lines)
