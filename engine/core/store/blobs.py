"""Content-addressed bytes under `blobs/3f/3fa1....jpg`, shared by all windows."""

from __future__ import annotations

import re
from pathlib import Path

from engine.core.errors import TerminalError
from engine.core.store.files import sha256_bytes, write_atomic


class BlobStore:
    """Put and get bytes by their sha256; a file that does not match its name is an error, never data."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, sha256: str, ext: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", sha256) or not re.fullmatch(r"[a-z0-9]{0,8}", ext):
            raise ValueError(f"not the name of a blob: {sha256!r} {ext!r}")
        return self.root / sha256[:2] / (f"{sha256}.{ext}" if ext else sha256)

    def put(self, data: bytes, ext: str) -> str:
        """Store bytes; returns their sha256. Storing twice is once."""
        sha256 = sha256_bytes(data)
        path = self.path(sha256, ext)
        if not path.is_file() or path.stat().st_size != len(data):
            write_atomic(path, data)
        return sha256

    def get(self, sha256: str, ext: str = "") -> bytes:
        """Bytes of a blob; without `ext` whichever suffix it has. Raises `TerminalError` if gone or damaged."""
        path = self.path(sha256, ext)
        if not ext and not path.is_file():
            path = next(iter(sorted(path.parent.glob(f"{sha256}.*"))), path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise TerminalError(f"the blob {path} is gone ({error.strerror}): collect the window again") from error
        if sha256_bytes(data) != sha256:
            raise TerminalError(f"the blob {path} is damaged (its sha256 differs): remove it and collect again")
        return data

    def has(self, sha256: str, ext: str) -> bool:
        return self.path(sha256, ext).is_file()
