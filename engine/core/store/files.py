"""Writing files so that a crash at any moment leaves either the old state or the new one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core.errors import ConfigError, TerminalError

TEMPORARY = ".tmp-"


def sha256_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fsync_dir(path: Path) -> None:
    """Make a rename in a directory durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file by a temporary neighbour, fsync and rename. Raises `TerminalError` where the disk says no."""
    write_atomic_parts(path, (data,))


def write_atomic_parts(path: Path, parts: Iterable[bytes]) -> None:
    """The same for a file that comes in parts; where making a part fails, nothing is left. Raises `ConfigError` for a
    path that is a folder."""
    if not path.name or path.is_dir():
        raise ConfigError(f"'{path}' is a folder: name a file to write")
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as handle:
            for part in parts:
                handle.write(part)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise disk_error(path, error) from error
        raise


def disk_error(path: Path, error: OSError) -> TerminalError:
    """The sentence for a disk that is full, read-only or not ours, and for a path that no disk could have."""
    if isinstance(error, (NotADirectoryError, FileExistsError, IsADirectoryError)):
        return TerminalError(f"{path} cannot be written: a part of that path is a file, or it is a folder itself")
    return TerminalError(
        f"{path} cannot be written ({error.strerror or error}): free some space or check the rights, then run "
        "again; what was finished is kept"
    )


@contextmanager
def committed_directory(final: Path) -> Iterator[Path]:
    """A temporary directory that becomes `final` by one rename if the body ends well, else disappears.

    All files are fsynced before the rename. If `final` was made by someone else meanwhile, theirs stays.
    """
    temporary = final.with_name(f"{TEMPORARY}{uuid.uuid4().hex}-{final.name}")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for path in sorted(temporary.rglob("*")):
            if path.is_file():
                fd = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
        if final.exists():
            return
        temporary.rename(final)
        fsync_dir(final.parent)
    except OSError as error:
        raise disk_error(final, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep(root: Path) -> int:
    """Remove what interrupted writes left; returns how many entries went. Only for a holder of the lock."""
    count = 0
    if not root.is_dir():
        return 0
    for path in sorted(root.rglob(f"{TEMPORARY}*")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        count += 1
    return count
