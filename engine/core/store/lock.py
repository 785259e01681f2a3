"""One writer per window and stage: a lock file with host, pid and start; a dead holder's lock is taken over.

The lock is an OS lock (`flock`) on a file that stays, so that a killed holder's lock is free at once and no
race exists between testing and taking. The file's text only tells people who holds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.core.errors import BusyError
from engine.core.store.files import disk_error


@contextmanager
def locked(path: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock for the body. Raises `BusyError` that names the holder if it is taken after `wait_s`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise disk_error(path, error) from error
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise BusyError(f"{path.parent} is being written by {_holder(fd)}: wait for it") from None
                time.sleep(0.05)
        who = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "start": time.time()})
        try:
            os.ftruncate(fd, 0)
            os.pwrite(fd, who.encode(), 0)
        except OSError as error:
            raise disk_error(path, error) from error
        yield
    finally:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, 0)
        os.close(fd)


def held(path: Path) -> bool:
    """Whether somebody holds the lock now. Looking takes the lock for a moment where it is free, so whoever must not
    be turned away by a look waits a moment itself."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _holder(fd: int) -> str:
    try:
        found = json.loads(os.pread(fd, 1000, 0))
        return f"process {found['pid']} on {found['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
