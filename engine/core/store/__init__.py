"""The store decides what is already done; see `stages` for the rules."""

from engine.core.store.blobs import BlobStore
from engine.core.store.files import committed_directory, sha256_bytes, sha256_file, sweep, write_atomic
from engine.core.store.home import Home
from engine.core.store.lock import held, locked
from engine.core.store.stages import StageDir, read_jsonl, stage_key
from engine.core.store.writers import alone, register_writer

__all__ = [
    "BlobStore",
    "Home",
    "StageDir",
    "alone",
    "committed_directory",
    "held",
    "locked",
    "read_jsonl",
    "register_writer",
    "sha256_bytes",
    "sha256_file",
    "stage_key",
    "sweep",
    "write_atomic",
]
