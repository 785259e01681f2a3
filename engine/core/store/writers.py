"""Who writes into a home, so that what a killed writer left is swept by the next one that is alone.

A stage sweeps its own folder under its lock; blobs and caches are shared by all stages and windows. Writers hold a
shared lock for as long as their process lives and leave a mark; whoever finds the mark and nobody else sweeps.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from engine.core.errors import BusyError
from engine.core.store.files import disk_error, sweep

LOCK = ".writers.lock"
MARK = ".writing"
#: Folders of a home that hold what stages write.
PARTS = ("blobs", "cache", "harvest", "windows", "snapshots", "predictions", "reports", "ledger")

_held: dict[Path, int] = {}


def register_writer(home: Path) -> int:
    """Count this process among the home's writers until it ends; returns how many leftovers were swept.

    A home that is not there yet, or cannot be written, needs none of this: the write itself will say so.
    """
    home = home.absolute()
    if home in _held or not home.is_dir():
        return 0
    try:
        fd = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return 0
    swept = 0
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if (home / MARK).exists():
            swept = sum(sweep(home / part) for part in PARTS)
    except BlockingIOError:
        swept = 0  # others are writing, their temporary files are alive
    fcntl.flock(fd, fcntl.LOCK_SH)
    with contextlib.suppress(OSError):
        (home / MARK).touch()
    _held[home] = fd
    atexit.register(leave, home)
    return swept


@contextlib.contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold a home for the body, so that no process begins to write into it. Raises `BusyError` while one does."""
    own = _held.get(home.absolute())
    try:
        fd = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) if own is None else own
    except OSError as error:
        raise disk_error(home / LOCK, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"{home} is being written by another process: wait for it") from None
        yield
    finally:
        if own is None:
            os.close(fd)
        else:
            fcntl.flock(own, fcntl.LOCK_SH)


def leave(home: Path) -> None:
    """End as a writer in good order; the last one takes the mark away."""
    home = home.absolute()
    fd = _held.pop(home, None)
    if fd is None:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (home / MARK).unlink(missing_ok=True)
    except OSError:
        return  # others still write, or the home is gone
    finally:
        os.close(fd)
