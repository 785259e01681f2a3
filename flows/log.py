"""Lines for machines: with `NEST_LOG=json` every line on stderr is one JSON object that names what it is about.

The ids are those of the run in hand: window, snapshot, stage, and the Prefect flow run where there is one. One run per
process is the rule, so they are the process's. What is said is the same as for people.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_ids: dict[str, str] = {}


def as_json() -> bool:
    """Whether lines are wanted as JSON."""
    return os.environ.get("NEST_LOG", "").lower() == "json"


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Name what the lines of the body are about; empty values are left out."""
    before = dict(_ids)
    _ids.update({name: value for name, value in ids.items() if value})
    try:
        yield
    finally:
        _ids.clear()
        _ids.update(before)


def ids() -> dict[str, str]:
    """What the lines are about at this moment."""
    return dict(_ids)


def line(text: str) -> str:
    """One JSON object: time (UTC), host, pid, the ids, and the message; "" for an empty line."""
    message = text.strip()
    if not message:
        return ""
    told = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        **_ids,
        "message": message,
    }
    return json.dumps(told, ensure_ascii=False)
