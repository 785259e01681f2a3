"""The `provenance` config of a snapshot, as far as evaluation needs it: aliases, parts, image keys, the source.

Only small columns are read, never masks or pixels. Columns that a snapshot does not have are left empty, so
that older and newer snapshots stay readable.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.errors import TerminalError

#: tag -> columns that may hold it
TAGS = {
    "domain": ("domain",),
    "entity_type": ("entity_type",),
    "kind": ("question_kind",),
    "publisher": ("publisher", "source"),
    "language": ("language",),
    "writer": ("writer",),
}
ALIASES = ("aliases", "answer_aliases")
ARTICLE_URLS = ("article_url", "canonical_url")
#: a perceptual hash makes near copies of one photo one cluster
IMAGE_KEYS = ("image_phashes", "image_sha256")
NOVELTY = ("novelty",)


@dataclass(frozen=True, slots=True)
class Origin:
    """What is known of one row beside its five columns."""

    aliases: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    image_keys: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()


class Origins:
    """The origins of a snapshot folder, for one pass over its rows in their order; falsy where there is no provenance.

    Both files are written in the order of ids, so that they are read side by side and nothing is kept; where a row's
    origin is not the next one, all of them are read into memory.
    """

    def __init__(self, folder: Path) -> None:
        self._files = sorted(folder.glob("provenance/**/*.parquet")) or sorted(folder.glob("**/provenance*.parquet"))
        self._next = self._all()
        self._known: dict[str, Origin] | None = None

    def __bool__(self) -> bool:
        return bool(self._files)

    def get(self, identity: str) -> Origin | None:
        """The origin of the next row. Raises `TerminalError` naming file and row for one that cannot be read."""
        if self._known is None:
            found = next(self._next, None)
            if found is not None and found[0] == identity:
                return found[1]
            self._known = dict(self._all())
        return self._known.get(identity)

    def _all(self) -> Iterator[tuple[str, Origin]]:
        for file in self._files:
            for index, row in enumerate(_small_rows(file)):
                if not isinstance(row.get("id"), str):
                    raise TerminalError(f"{file}, row {index}: there is no id")
                yield row["id"], _origin(row, f"{file}, row {index} ({row['id']})")


def _small_rows(file: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = {
        "id",
        *ALIASES,
        *ARTICLE_URLS,
        *IMAGE_KEYS,
        *NOVELTY,
        *(name for names in TAGS.values() for name in names),
    }
    try:
        with pq.ParquetFile(file) as parquet:
            columns = [name for name in parquet.schema_arrow.names if name in wanted]
            for batch in parquet.iter_batches(batch_size=1024, columns=columns, use_threads=False):
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(f"{file} cannot be read as Parquet: {error}") from error


def _origin(row: Mapping[str, Any], where: str) -> Origin:
    tags = {}
    for tag, columns in TAGS.items():
        value = _first(row, columns)
        value = value.get("name") if isinstance(value, Mapping) else value
        if isinstance(value, str) and value:
            tags[tag] = value
    tags.update(_novelty(_first(row, NOVELTY), where))
    urls = dict.fromkeys(str(row[column]) for column in ARTICLE_URLS if row.get(column))
    return Origin(
        aliases=tuple(str(alias) for alias in _first(row, ALIASES) or ()),
        tags=tags,
        image_keys=_image_keys(row),
        blocked=tuple(urls),
    )


def _image_keys(row: Mapping[str, Any]) -> tuple[str, ...]:
    for column in IMAGE_KEYS:
        keys = row.get(column)
        if keys and all(keys):
            return tuple(str(key) for key in keys)
    return ()


def _first(row: Mapping[str, Any], columns: Iterable[str]) -> Any:
    for column in columns:
        value = row.get(column)
        if value is not None and value != "" and value != []:
            return value
    return None


def _novelty(value: Any, where: str) -> dict[str, str]:
    """Tags `novelty:<model>` from a list of {model, label} or a mapping, either of them possibly as JSON text.

    A model that named the entity in any of its probes knows it: one "emerging" label outweighs the others.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise TerminalError(f"{where}: the novelty labels are not JSON: {error}") from error
    pairs = value.items() if isinstance(value, Mapping) else ((one.get("model"), one.get("label")) for one in value)
    labels: dict[str, str] = {}
    for model, label in pairs:
        if model and label and labels.get(f"novelty:{model}") != "emerging":
            labels[f"novelty:{model}"] = str(label)
    return labels
