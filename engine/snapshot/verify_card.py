"""Holding a card against its data: counts, sizes, columns, and whose repository its usage example loads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.core.schema import SnapshotManifest
from engine.snapshot.card import NO_CONTACT, read_card, size_category
from engine.snapshot.findings import Findings, Kind
from engine.snapshot.names import CARD

if TYPE_CHECKING:
    from datasets import Features

#: Download and data size of pictures that are compressed already are about equal; published figures further apart
#: than this mean stale files or a wrong count. The published NEST set's are apart by 1.99.
SIZE_RATIO = 1.2
#: Differences of less than this many bytes are footers and indexes, not stale files.
SMALL_BYTES = 5_000_000

_USAGE = re.compile(r"""load_dataset\(\s*["']([^"']+)["']""")
_PAIRS = re.compile(
    r"\|\s*(?:Total QA pairs|Question-answer pairs|QA pairs)\s*\|\s*([\d,. ]+?)\s*\|"
    r"|\*\*([\d,]+) image-question-answer-mask samples\*\*",
    re.IGNORECASE,
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(slots=True)
class DataFigures:
    """What the data files really have: rows, bytes of the encoded columns, bytes of the files, columns.

    Not `whole` where a file could not be read: then nothing is held against the counts.
    """

    rows: int = 0
    data_bytes: int = 0
    files_bytes: int = 0
    features: Features | None = None
    whole: bool = True


def has_contact(text: str) -> bool:
    """Whether a card says where a removal is asked for."""
    return NO_CONTACT not in text


def check_card(
    text: str, figures: DataFigures, *, manifest: SnapshotManifest | None, repo: str | None, found: Findings
) -> None:
    """Note what the card says and the data does not."""
    try:
        card, configs, infos = read_card(text)
    except ValueError as error:
        found.note(CARD, Kind.CARD_INVALID, str(error))
        return
    if not configs:
        found.note(CARD, Kind.CARD_INVALID, "it declares no configs: nothing says which files make which split")
    if figures.whole:
        _check_figures(card, infos, text, figures, found)
    _check_usage(text, manifest, repo, found)


def _check_figures(card: Any, infos: Mapping[str, Any], text: str, figures: DataFigures, found: Findings) -> None:
    for name, info in infos.items():
        _check_info(name or "default", info, figures, found)
    told = getattr(card.data, "size_categories", None) or []
    if told and size_category(figures.rows) not in ([told] if isinstance(told, str) else told):
        detail = f"it says {told}, {figures.rows} rows are {size_category(figures.rows)}"
        found.note(CARD, Kind.CARD_SIZE_CATEGORY, detail)
    for match in _PAIRS.finditer(text):
        count = int(re.sub(r"\D", "", match[1] or match[2]) or 0)
        if count != figures.rows:
            found.note(CARD, Kind.CARD_ROWS, f"its text says {count} samples, the data has {figures.rows}")


def _check_info(name: str, info: Any, figures: DataFigures, found: Findings) -> None:
    rows = sum(split.num_examples or 0 for split in (info.splits or {}).values())
    if rows != figures.rows:
        found.note(CARD, Kind.CARD_ROWS, f"config {name}: it says {rows} rows, the data has {figures.rows}")
    if name == "provenance":
        return
    if figures.features is not None and info.features is not None and info.features != figures.features:
        found.note(CARD, Kind.CARD_FEATURES, f"config {name}: it declares other columns than the published set has")
    download, size = info.download_size or 0, info.dataset_size or 0
    if abs(download - size) > SMALL_BYTES and max(download, size) > SIZE_RATIO * min(download, size):
        detail = (
            f"config {name}: download_size {download} and dataset_size {size} are apart by a factor of "
            f"{max(download, size) / max(1, min(download, size)):.2f}: stale files of an older upload?"
        )
        found.note(CARD, Kind.CARD_BYTES, detail)
    if download and figures.files_bytes and download != figures.files_bytes:
        detail = f"config {name}: it says download_size {download}, the files have {figures.files_bytes} bytes"
        found.note(CARD, Kind.CARD_BYTES, detail)


def _check_usage(text: str, manifest: SnapshotManifest | None, repo: str | None, found: Findings) -> None:
    for used in sorted(set(_USAGE.findall(text))):
        if repo and used != repo:
            found.note(CARD, Kind.CARD_REPOSITORY, f"its example loads {used}, the data lies in {repo}")
        elif manifest and _HUB_NAME.fullmatch(used) and used.split("/")[1] != manifest.name:
            found.note(CARD, Kind.CARD_REPOSITORY, f"its example loads {used}, the snapshot is {manifest.name}")
