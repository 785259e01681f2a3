"""Sealed weeks in a home: the secret key, when it opens, and the predictions that came before.

`<home>/sealed/<snapshot>.json` holds the key until it is published and is readable by its owner alone; beside it lie
the predictions that were handed in, with the moment at which they came.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime

from engine.core.errors import ConfigError, RefusedError, TerminalError
from engine.core.schema import Record, ScoreReport, Value, Window
from engine.core.store import sha256_file, write_atomic

if TYPE_CHECKING:
    from engine.core.config import Config
    from engine.snapshot.hub_sealed import Published

FOLDER = "sealed"


class Received(Value):
    """Predictions handed in before the answers were published: their file's name here and its sha256."""

    file: str
    sha256: str
    at: AwareDatetime


class SealedWeek(Record):
    """What a home knows of a sealed week."""

    name: str
    revision: str
    repo: str
    key: str
    opens: date
    opened_at: AwareDatetime | None = None
    received: tuple[Received, ...] = ()

    @property
    def secret(self) -> bytes:
        return bytes.fromhex(self.key)


def read(home: Path, name: str) -> SealedWeek | None:
    """The record of a sealed week, None if the week is none. Raises `TerminalError` for a damaged one."""
    path = _path(home, name)
    try:
        return SealedWeek.read(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TerminalError(
            f"{path} cannot be read ({error}): it holds the key of a sealed week, restore it"
        ) from error


def opens_on(config: Config, window: Window, name: str, *, now: datetime) -> date | None:
    """The day until which a week is pushed sealed; None if it is pushed openly.

    A week that was sealed stays so until it is opened, whatever the configuration says by then.
    """
    kept = read(config.home, name)
    if kept is not None:
        return None if kept.opened_at else kept.opens
    if not config.hub.sealed:
        return None
    if config.hub.hold:
        raise ConfigError("[hub] hold keeps a week private and sealed publishes its questions at once: choose one")
    opens = window.last + timedelta(weeks=config.hub.sealed)
    return opens if now.date() < opens else None


def push(
    config: Config,
    folder: Path,
    *,
    repo: str,
    opens: date,
    token: str | None,
    private: bool,
    allow_portable: bool = False,
) -> Published:
    """Publish the sealed edition of a snapshot folder; its key is kept before anything leaves."""
    import tempfile

    from engine.snapshot.fit import check_fit
    from engine.snapshot.hub_sealed import push_sealed
    from engine.snapshot.manifest import read_manifest
    from engine.snapshot.sealed import KEY_BYTES, write_sealed

    manifest = read_manifest(folder)
    check_fit(manifest, folder, allow_portable=allow_portable)
    kept = read(config.home, manifest.name)
    if kept is None:
        key = secrets.token_hex(KEY_BYTES)
        kept = SealedWeek(name=manifest.name, revision=manifest.revision, repo=repo, key=key, opens=opens)
    if kept.repo != repo:
        raise RefusedError(f"{manifest.name} was sealed for {kept.repo}: the same questions under two keys help nobody")
    kept = kept.model_copy(update={"revision": manifest.revision})
    _write(config.home, kept)
    with tempfile.TemporaryDirectory(prefix="nest-sealed-") as work:
        out = Path(work) / "folder"
        out.mkdir()
        write_sealed(
            folder,
            out,
            key=kept.secret,
            opens=kept.opens,
            hub_repo=repo,
            contact=config.snapshot.contact,
            license=config.snapshot.license,
        )
        # rows that a review or a takedown took out go from there as well
        return push_sealed(out, repo=repo, token=token, private=private, replace=True)


def unseal(
    config: Config,
    folder: Path,
    *,
    token: str | None,
    now: datetime,
    early: bool = False,
    allow_portable: bool = False,
) -> tuple[SealedWeek, Published]:
    """Publish key, answers and masks of a sealed week, and give the predictions received before their final ids.

    Raises `RefusedError` before its day (unless `early`), `ConfigError` for a week that is not sealed.
    """
    import tempfile

    from engine.snapshot.hub import push as push_folder
    from engine.snapshot.hub_sealed import Published, publish_key
    from engine.snapshot.manifest import read_manifest

    manifest = read_manifest(folder)
    kept = read(config.home, manifest.name)
    if kept is None:
        raise ConfigError(f"{manifest.name} is not sealed: nothing is to be opened")
    if now.date() < kept.opens and not early and kept.opened_at is None:
        raise RefusedError(f"{manifest.name} is promised to stay sealed until {kept.opens}: --early breaks that")
    if kept.revision != manifest.revision and kept.opened_at is None:
        raise RefusedError(
            f"{manifest.name} is {manifest.revision} now and was sealed as {kept.revision}: 'nest push' seals the "
            "present rows first, or the hashes would not match"
        )
    with tempfile.TemporaryDirectory(prefix="nest-unseal-") as work:
        publish_key(repo=kept.repo, key=kept.secret, token=token, work=Path(work))
    done = push_folder(folder, repo=kept.repo, token=token, allow_portable=allow_portable, opens_seal=True)
    if kept.opened_at is None:
        kept = kept.model_copy(update={"opened_at": now.replace(microsecond=0)})
        _write(config.home, kept)
    _translate(config.home, kept, folder)
    return kept, Published("opened", kept.repo, done.commit)


def due(home: Path, *, now: datetime) -> list[SealedWeek]:
    """Sealed weeks whose day has come, oldest first."""
    found = [read(home, path.stem) for path in sorted((home / FOLDER).glob("NEST_*.json"))]
    return [week for week in found if week is not None and week.opened_at is None and week.opens <= now.date()]


def receive(home: Path, name: str, source: Path, *, now: datetime) -> Received:
    """Keep predictions that were handed in. Raises `RefusedError` once the answers are out."""
    kept = read(home, name)
    if kept is None:
        raise ConfigError(f"{name} is not a sealed week: score its predictions with 'nest score'")
    if kept.opened_at is not None:
        raise RefusedError(f"{name} was opened on {kept.opened_at:%Y-%m-%d}: predictions are no longer sealed")
    if not source.is_file() or source.suffix not in (".jsonl", ".parquet"):
        raise ConfigError(f"{source} is no .jsonl or .parquet file of predictions")
    digest = sha256_file(source)
    for known in kept.received:
        if known.sha256 == digest:
            return known
    new = Received(file=f"{digest[:8]}-{source.name}", sha256=digest, at=now.replace(microsecond=0))
    place = home / FOLDER / name / new.file
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    _write(home, kept.model_copy(update={"received": (*kept.received, new)}))
    return new


def opened_files(home: Path, kept: SealedWeek) -> list[Path]:
    """The received predictions under the rows' final ids, once the week is opened."""
    return [path for one in kept.received if (path := home / FOLDER / kept.name / "opened" / one.file).is_file()]


def mark(report: ScoreReport, home: Path) -> ScoreReport:
    """The report with a note on each segmenter whose predictions were received before the answers were published."""
    kept = read(home, report.dataset)
    if kept is None or kept.opened_at is None:
        return report
    times = {f"files:{one.file}": one.at for one in kept.received}
    segmenters = tuple(
        info.model_copy(
            update={
                "note": f"sealed: received {times[info.name]:%Y-%m-%d}, answers published {kept.opened_at:%Y-%m-%d}"
            }
        )
        if info.name in times
        else info
        for info in report.segmenters
    )
    return report.model_copy(update={"segmenters": segmenters})


def _translate(home: Path, kept: SealedWeek, folder: Path) -> None:
    """Write the received predictions again with final ids; lines of unknown ids are left out."""
    from engine.snapshot.revise import read_rows
    from engine.snapshot.sealed import sealed_id

    final = {sealed_id(kept.secret, row.id): row.id for row in read_rows(folder)}
    for one in kept.received:
        source, out = home / FOLDER / kept.name / one.file, home / FOLDER / kept.name / "opened" / one.file
        if source.suffix == ".jsonl":
            write_atomic(out, _lines(source, final))
        else:
            _parquet(source, out, final)


def _lines(source: Path, final: dict[str, str]) -> bytes:
    out = []
    for line in source.read_text(encoding="utf-8").splitlines():
        try:
            row: dict[str, Any] = json.loads(line)
            name = final[str(row.get("id", row.get("sample_id")))]
        except (ValueError, KeyError, AttributeError):
            continue
        key = "id" if "id" in row else "sample_id"
        out.append(json.dumps({**row, key: name}) + "\n")
    return "".join(out).encode()


def _parquet(source: Path, out: Path, final: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(source)
    except (OSError, pa.ArrowException) as error:
        raise TerminalError(
            f"{source} cannot be read as Parquet ({error}): remove it from the received ones"
        ) from error
    key = "id" if "id" in table.column_names else "sample_id"
    if key not in table.column_names:
        return
    known = [final.get(str(name)) for name in table.column(key).to_pylist()]
    kept = table.filter(pa.array([name is not None for name in known]))
    names = pa.array([name for name in known if name is not None], pa.string())
    out.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(kept.set_column(kept.column_names.index(key), key, names), out)


def _path(home: Path, name: str) -> Path:
    return home / FOLDER / f"{name}.json"


def _write(home: Path, kept: SealedWeek) -> None:
    path = _path(home, kept.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    write_atomic(path, (kept.line() + "\n").encode())
    os.chmod(path, 0o600)


def today() -> datetime:
    """Now, aware; commands take it from here."""
    return datetime.now(UTC)
