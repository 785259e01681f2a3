"""Rows into Parquet shards, in one pass, with memory bounded by one row group.

Row groups are cut by the real bytes of their rows and not by an estimate, shards by the bytes written. The writer
is pinned: pictures are stored as they are (they are compressed already), texts with zstd, no dictionary for
pictures, page index and content-defined page borders as `datasets` 5 writes them. No time, host or path goes into
a file, so the same rows give the same bytes for one version of pyarrow.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from engine.snapshot.names import shard_name

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

#: Chunking of `datasets` 5 (its DEFAULT_CDC_OPTIONS): revisions of a set then share most of their stored bytes.
CDC = {"min_chunk_size": 256 * 1024, "max_chunk_size": 1024 * 1024, "norm_level": 0}


class ShardWriter:
    """Writes `<split>-00000-of-0000N.parquet` files into a folder; N is known at the end, so they are renamed then.

    Use as a context manager and read `rows`, `num_bytes` (of the Arrow tables) and `paths` after it. A split
    without rows is one file without row groups, which `datasets` loads as an empty split.
    """

    def __init__(
        self,
        folder: Path,
        features: Features,
        *,
        split: str = "train",
        row_group_bytes: int = 100_000_000,
        shard_bytes: int = 500_000_000,
    ) -> None:
        self.rows = 0
        self.num_bytes = 0
        self.paths: list[Path] = []
        self._folder = folder
        self._schema: pa.Schema = features.arrow_schema
        self._split = split
        self._row_group_bytes = row_group_bytes
        self._shard_bytes = shard_bytes
        self._pending: list[dict[str, Any]] = []
        self._pending_bytes = 0
        self._writer: Any = None
        self._sink: Any = None
        self._written = 0
        folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish()
        elif self._sink is not None:
            self._sink.close()

    def write(self, row: dict[str, Any], size_bytes: int) -> None:
        """Add a row of about `size_bytes`; it is on disk when its row group is full."""
        if self._pending and self._pending_bytes + size_bytes > self._row_group_bytes:
            self._flush()
        self._pending.append(row)
        self._pending_bytes += size_bytes
        self.rows += 1

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._pending:
            return
        if self._writer is not None and self._written + self._pending_bytes > self._shard_bytes:
            self._close()
        if self._writer is None:
            self._open()
        columns = [pa.array([row[field.name] for row in self._pending], field.type) for field in self._schema]
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._pending = []
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.num_bytes += int(table.nbytes)
        self._written = int(self._sink.tell())
        self._pending_bytes = 0

    def _open(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._folder / f"{self._split}-{len(self.paths):05d}.parquet"
        # written straight to a file: pyarrow buffers nothing beyond the row group
        self._sink = pa.OSFile(str(path), "wb")
        leaves = _leaves(self._schema)
        pictures = [leaf for leaf in leaves if leaf.endswith(".bytes")]
        self._writer = pq.ParquetWriter(
            self._sink,
            self._schema,
            version="2.6",
            data_page_version="1.0",
            compression={leaf: "NONE" if leaf in pictures else "ZSTD" for leaf in leaves},
            use_dictionary=[leaf for leaf in leaves if leaf not in pictures],
            write_statistics=[leaf for leaf in leaves if leaf not in pictures],
            use_content_defined_chunking=CDC,
            write_page_index=True,
            store_schema=True,
        )
        self._writer.add_key_value_metadata({"content_defined_chunking": json.dumps(CDC)})
        self.paths.append(path)

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._sink.close()
        self._writer = self._sink = None
        self._written = 0

    def _finish(self) -> None:
        self._flush()
        if not self.paths:
            self._open()
        self._close()
        final = []
        for index, path in enumerate(self.paths):
            final.append(path.rename(self._folder / shard_name(self._split, index, len(self.paths))))
        self.paths = final


def _leaves(schema: Any) -> list[str]:
    """Parquet column paths of an Arrow schema (`images.list.element.bytes`)."""
    import pyarrow as pa

    def walk(prefix: str, kind: Any) -> list[str]:
        if pa.types.is_struct(kind):
            return [leaf for field in kind for leaf in walk(f"{prefix}.{field.name}", field.type)]
        if pa.types.is_list(kind):
            return walk(f"{prefix}.list.element", kind.value_type)
        return [prefix]

    return [leaf for field in schema for leaf in walk(field.name, field.type)]
