"""Loading a written folder with `load_dataset` and comparing every row with what was to be written.

Nothing is called published that a reader cannot load. The load runs in a temporary cache of its own, so that it
neither finds nor leaves anything on the machine, and it opens no connection: the folder is local.
"""

from __future__ import annotations

import contextlib
import hashlib
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import TerminalError

if TYPE_CHECKING:
    from datasets import Features

#: Bytes of Arrow data that are mapped at a time.
SLICE_BYTES = 100_000_000


def row_digest(row: Mapping[str, Any]) -> bytes:
    """sha256 of a row's values, whatever mapping or sequence types hold them; column order does not matter."""
    found = hashlib.sha256()
    _feed(found, row)
    return found.digest()


def _feed(found: hashlib._Hash, value: Any) -> None:
    if value is None:
        found.update(b"n")
    elif isinstance(value, bool):
        found.update(b"t" if value else b"f")
    elif isinstance(value, bytes):
        found.update(b"b%d:" % len(value))
        found.update(value)
    elif isinstance(value, str):
        data = value.encode()
        found.update(b"s%d:" % len(data))
        found.update(data)
    elif isinstance(value, int):
        found.update(b"i%d;" % value)
    elif isinstance(value, float):
        found.update(b"d" + struct.pack("<d", value))
    elif isinstance(value, datetime):
        found.update(b"z%d;" % int(value.timestamp()))
    elif isinstance(value, Mapping):
        found.update(b"{%d:" % len(value))
        for name in sorted(value):
            _feed(found, name)
            _feed(found, value[name])
    elif isinstance(value, Sequence):
        found.update(b"[%d:" % len(value))
        for item in value:
            _feed(found, item)
    else:
        raise TypeError(f"a row cannot hold a {type(value).__name__}")


def compare(folder: Path, *, config: str, split: str, features: Features, expected: Sequence[bytes]) -> None:
    """Load one config of the folder and hold its features and rows against the expected digests, in order.

    Raises `TerminalError` that names the config and the first row that differs.
    """
    import pyarrow as pa

    # what the writer has given back to Arrow's pool would otherwise count beside what is read now
    pa.default_memory_pool().release_unused()
    if not expected:
        _compare_empty(folder, config=config, split=split, features=features)
        return
    with loaded(folder, config=config, split=split) as (found, rows):
        if found != features:
            raise TerminalError(f"{folder}, config {config}: the columns came back as {found}, not as {features}")
        count = 0
        for row in rows:
            if count >= len(expected) or row_digest(row) != expected[count]:
                raise TerminalError(f"{folder}, config {config}: row {count} ({row.get('id')}) came back changed")
            count += 1
        if count != len(expected):
            raise TerminalError(f"{folder}, config {config}: {count} rows came back, {len(expected)} were written")


def _compare_empty(folder: Path, *, config: str, split: str, features: Features) -> None:
    """A split without rows: `datasets` 5.2 makes no map-style dataset of it ("corresponds to no data") but streams it.

    So its builder is asked for columns and files, and the files for their rows.
    """
    import datasets
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory(prefix=".tmp-readback-", dir=folder.parent) as cache, _quiet():
        try:
            builder = datasets.load_dataset_builder(str(folder), config, cache_dir=cache)
            files = builder.config.data_files[split]
            rows = sum(pq.read_metadata(path).num_rows for path in files)
        except Exception as error:
            raise TerminalError(f"{folder}, config {config}: load_dataset failed: {error}") from error
        if builder.info.features != features or rows:
            raise TerminalError(f"{folder}, config {config}: {rows} rows of {builder.info.features} came back")


@contextlib.contextmanager
def loaded(folder: Path, *, config: str, split: str) -> Iterator[tuple[Features, Iterable[dict[str, Any]]]]:
    """Features and rows (pictures as bytes) of a local folder, through `load_dataset` with a cache of its own."""
    import datasets
    import pyarrow.dataset as pads

    # without it pyarrow keeps what it has read of a shard until the shard's end
    plain = pads.ParquetFragmentScanOptions(pre_buffer=False)

    def load(part: str) -> Any:
        try:
            return datasets.load_dataset(str(folder), config, split=part, cache_dir=cache, fragment_scan_options=plain)
        except Exception as error:
            raise TerminalError(f"{folder}, config {config}: load_dataset failed: {error}") from error

    # beside the folder: the temporary directory of a machine may be too small for a snapshot
    with tempfile.TemporaryDirectory(prefix=".tmp-readback-", dir=folder.parent) as cache, _quiet():
        data = load(split)
        yield data.features, _rows(data, load, split)
        # the memory map holds the cache's files open
        del data


def _rows(data: Any, load: Callable[[str], Any], split: str) -> Iterator[dict[str, Any]]:
    """Rows in slices that are mapped one at a time: the pages of a mapped file count as memory once they were read."""
    count = len(data)
    step = max(1, SLICE_BYTES * count // max(1, int(data.data.nbytes)))
    for start in range(0, count, step):
        part = data if step >= count else load(f"{split}[{start}:{min(start + step, count)}]")
        for table in part.with_format("arrow").iter(batch_size=8):
            yield from table.to_pylist()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars: a log or a pipe has no use for them."""
    import datasets

    shown = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not shown:
            datasets.enable_progress_bars()
