"""Reading the pickles of refCOCO's makers without running what is in them.

A pickle is a program: opening one with the standard loader runs any function it names. The published files are
plain lists, dictionaries, texts and numbers, so that nothing has to be found by name; a pickle that asks for any
class or function is refused.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

from engine.core.errors import TerminalError


class _Plain(pickle.Unpickler):
    """Builds builtin containers, texts and numbers only."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which plain data does not need")

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError(f"it refers to something outside ({pid!r})")


def read_plain_pickle(path: Path) -> Any:
    """The data of a pickle of plain values; texts of Python 2 are read as UTF-8.

    Raises `TerminalError` for a pickle that names classes or functions, and for a broken one; nothing in it runs.
    """
    try:
        return _Plain(io.BytesIO(path.read_bytes()), encoding="utf-8").load()
    except OSError as error:
        raise TerminalError(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:
        # a hostile stream may raise anything
        raise TerminalError(f"{path} is not read: {error}. Nothing in it was run; convert it to JSON") from error
