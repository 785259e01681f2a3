"""Finished stages on disk: `windows/<label>/<stage>/<key>/` with data, rejects and a manifest.

A stage directory with a `manifest.json` is finished and never edited; without one it holds at most committed
shards. The key is a digest of the stage's version, its config and the digests of its inputs, so the same inputs
find the same directory, and nobody ever looks for "the newest". Times and costs go to `run.json`, which is
outside every digest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.core.errors import RefusedError, TerminalError
from engine.core.schema import FunnelStep, Record, Rejected, canonical_json, why
from engine.core.store.files import (
    committed_directory,
    sha256_bytes,
    sha256_file,
    sweep,
    write_atomic,
    write_atomic_parts,
)
from engine.core.store.lock import held, locked

R = TypeVar("R", bound=Record)
MANIFEST = "manifest.json"
DATA = "part-00000.jsonl"
REJECTED = "rejected.jsonl"
RUN = "run.json"
PLAN = "plan.txt"


def stage_key(stage: str, version: str, config: Mapping[str, Any], inputs: Sequence[str]) -> str:
    """16 hex digits that name a stage's result."""
    told = canonical_json({"stage": stage, "version": version, "config": config, "inputs": list(inputs)})
    return sha256_bytes(told.encode())[:16]


@dataclass(frozen=True, slots=True)
class StageDir:
    """One stage's directory. Reading needs no lock; writing is for the holder of `lock()`."""

    path: Path

    @property
    def finished(self) -> bool:
        try:
            return (self.path / MANIFEST).stat().st_size > 0
        except OSError:
            return False

    def lock(self, *, wait_s: float = 0.0) -> contextlib.AbstractContextManager[None]:
        return locked(self.path.parent / f".{self.path.name}.lock", wait_s=wait_s)

    def manifest(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise TerminalError(f"{self.path / MANIFEST} cannot be read: {error}") from error
        return found

    def digests(self) -> tuple[str, ...]:
        """sha256 of the data files, for the next stage's key."""
        files = self.manifest()["files"]
        return tuple(str(files[name]) for name in sorted(files) if name != REJECTED)

    def funnel(self) -> FunnelStep:
        return FunnelStep.model_validate(self.manifest()["funnel"])

    def read(self, kind: type[R]) -> list[R]:
        return list(self.iterate(kind))

    def iterate(self, kind: type[R]) -> Iterator[R]:
        yield from read_jsonl(self.path / DATA, kind)

    def run(self) -> dict[str, Any]:
        """What the stage's work took, in no digest; empty if that is not there any more."""
        return _told(self.path / RUN)

    def rejected(self) -> list[Rejected]:
        return list(read_jsonl(self.path / REJECTED, Rejected))

    # -- shards of a long stage

    def shard(self, index: int) -> Path:
        return self.path / "shards" / f"{index:05d}"

    def shard_done(self, index: int) -> bool:
        """Whether the shard is there whole; one that a dying disk or file system cut is to be made again."""
        folder = self.shard(index)
        try:
            sizes = json.loads((folder / MANIFEST).read_text(encoding="utf-8")).get("bytes", {})
            return all((folder / name).stat().st_size == size for name, size in sizes.items())
        except (OSError, ValueError, AttributeError):
            return False

    def agree(self, plan: str) -> None:
        """Say into how large shards the stage is cut; all workers and all tries have to say the same, since a shard is
        known by its number. Shards of another plan are thrown away if nobody works on them. Raises `RefusedError`."""
        told = self.path / "shards" / PLAN
        with locked(self.path / ".plan.lock", wait_s=10.0):
            there = told.read_text(encoding="utf-8") if told.is_file() else ""
            if there == plan:
                return
            if there:
                if any(held(lock) for lock in sorted(self.path.glob(".shard-*.lock"))):
                    raise RefusedError(
                        f"{self.path} is being made by another worker in shards of {there}, here they are of {plan}: "
                        "give all workers the same settings"
                    )
                shutil.rmtree(self.path / "shards")
            write_atomic(told, plan.encode())

    def commit_shard(
        self,
        index: int,
        items: Iterable[Record],
        rejected: Iterable[Rejected],
        run: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one shard at once; a second commit of the same shard changes nothing."""
        if self.shard(index).exists() and not self.shard_done(index):
            shutil.rmtree(self.shard(index))
        with committed_directory(self.shard(index)) as folder:
            counts: dict[str, Any] = {
                "kept": _write_jsonl(folder / DATA, items),
                "rejected": _write_jsonl(folder / REJECTED, rejected),
            }
            counts["bytes"] = {name: (folder / name).stat().st_size for name in (DATA, REJECTED)}
            (folder / RUN).write_text(canonical_json(dict(run or {})), encoding="utf-8")
            (folder / MANIFEST).write_text(canonical_json(counts), encoding="utf-8")

    def run_of(self, index: int) -> dict[str, Any]:
        """What a shard's work took; empty if that is not there any more."""
        return _told(self.shard(index) / RUN)

    def read_shards(self, kind: type[R], count: int) -> tuple[list[R], list[Rejected]]:
        items: list[R] = []
        rejected: list[Rejected] = []
        for index in range(count):
            items += read_jsonl(self.shard(index) / DATA, kind)
            rejected += read_jsonl(self.shard(index) / REJECTED, Rejected)
        return items, rejected

    # -- the whole stage

    def commit(
        self,
        items: Sequence[Record],
        rejected: Sequence[Rejected],
        *,
        stage: str,
        found: int,
        run: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Finish the stage. Items are sorted by id, so that the order of work does not show."""
        refused = sorted(rejected, key=lambda item: (item.item, item.code.value, item.detail))
        self.commit_sorted(sorted(items, key=_identity), refused, stage=stage, found=found, run=run, extra=extra)

    def commit_sorted(
        self,
        items: Iterable[Record],
        rejected: Iterable[Rejected],
        *,
        stage: str,
        found: int,
        run: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Finish the stage with records that come in order (items by id, rejects by item, code and detail), one at a
        time: the same bytes as `commit` in the memory of one record."""
        counts: Counter[str] = Counter()

        def counted() -> Iterator[Rejected]:
            for item in rejected:
                counts[item.code.value] += 1
                yield item

        data, kept = _stream_jsonl(self.path / DATA, items)
        lost, _ = _stream_jsonl(self.path / REJECTED, counted())
        step = FunnelStep(stage=stage, found=found, kept=kept, rejected=dict(counts))
        write_atomic(self.path / RUN, canonical_json(dict(run or {})).encode())
        manifest = {
            "stage": stage,
            "key": self.path.name,
            "files": {DATA: data, REJECTED: lost},
            "funnel": step.model_dump(mode="json"),
            **dict(extra or {}),
        }
        write_atomic(self.path / MANIFEST, canonical_json(manifest).encode())

    def check(self) -> None:
        """Raise `TerminalError` if a data file does not match the manifest.

        What a takedown removed from a file is noted there as its digest since ("purged"): keys stay as they were.
        """
        told = self.manifest()
        for name, digest in {**told["files"], **told.get("purged", {})}.items():
            if not (self.path / name).is_file() or sha256_file(self.path / name) != digest:
                raise TerminalError(f"{self.path / name} differs from its manifest: remove {self.path} and run again")

    def sweep(self) -> int:
        return sweep(self.path)


def read_jsonl(path: Path, kind: type[R]) -> Iterator[R]:
    """Records of a JSONL file, one at a time. Raises `TerminalError` with file and line for one that does not fit."""
    try:
        handle = path.open(encoding="utf-8")
    except OSError as error:
        raise TerminalError(f"{path} cannot be read: {error.strerror}") from error
    with handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                yield kind.read(json.loads(line))
            except ValueError as error:
                raise TerminalError(f"{path}, line {number}: not a {kind.__name__}: {why(error)}") from error


def _told(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _identity(record: Record) -> str:
    return str(getattr(record, "id", "") or getattr(record, "sample_id", "") or record.line())


def _stream_jsonl(path: Path, records: Iterable[Record]) -> tuple[str, int]:
    """Write records one by one; digest and count of what was written."""
    digest = hashlib.sha256()
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for record in records:
            line = record.line().encode() + b"\n"
            digest.update(line)
            count += 1
            yield line

    write_atomic_parts(path, lines())
    return digest.hexdigest(), count


def _write_jsonl(path: Path, records: Iterable[Record]) -> int:
    count = 0
    with path.open("wb") as handle:
        for record in records:
            handle.write(record.line().encode() + b"\n")
            count += 1
    return count
