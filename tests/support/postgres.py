"""A private PostgreSQL cluster on loopback for a test, from the system's own packages; it runs as a user that is not
root and leaves nothing behind."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NEEDED = ("initdb", "postgres", "pg_isready", "pg_dump")


def binaries() -> Path | None:
    """Folder of initdb and postgres, None where they are not installed."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if all((place / name).is_file() for name in NEEDED)), None)


class Postgres:
    """`url` is for Prefect's `PREFECT_API_DATABASE_CONNECTION_URL`."""

    def __init__(self) -> None:
        bin_dir = binaries()
        assert bin_dir is not None, "look at binaries() first"
        self.bin = bin_dir
        self.folder = Path(tempfile.mkdtemp(prefix="nest-postgres-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.url = f"postgresql+asyncpg://postgres@127.0.0.1:{self.port}/postgres"
        # the server refuses to run as root; the packages bring a user of its own
        self.as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.as_user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        data = self.folder / "data"
        log = (self.folder / "log.txt").open("wb")
        with log:
            words = [self.bin / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
            subprocess.run(words, check=True, stdout=log, stderr=log, cwd=self.folder, **self.as_user)
            words = [
                self.bin / "postgres",
                "-D",
                data,
                "-h",
                "127.0.0.1",
                "-p",
                str(self.port),
                "-k",
                self.folder,
                "-F",
            ]
            self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=self.folder, **self.as_user)
        ready = [self.bin / "pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        deadline = time.monotonic() + 60
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < deadline, (self.folder / "log.txt").read_text()[-2000:]
            time.sleep(0.2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def text(self) -> str:
        """Everything in the database, for looking for what must not be in it."""
        words = [self.bin / "pg_dump", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "postgres"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
