"""The `nest` command that kills itself at a step of its way through the Batch API.

    python -m support.killed_batches STEP WORDS...

Only what is named is wrapped, and only to die after it: everything else is the program as it is.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from engine.llm.batch import BatchQueue
from engine.llm.cache import ReplyCache
from engine.llm.ledger import Ledger

SUBMITTING = ("written down", "file sent", "batch made", "submitted")
COLLECTING = ("half collected", "in the ledger", "collected")


def die_after(holder: Any, name: str, times: int) -> None:
    """Wrap a method, so that the process dies by kill -9 when it has returned for the `times`-th time."""
    inner = getattr(holder, name)
    calls = []

    def wrapped(*words: Any, **named: Any) -> Any:
        found = inner(*words, **named)
        calls.append(1)
        if len(calls) == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    async def awaited(*words: Any, **named: Any) -> Any:
        found = await inner(*words, **named)
        calls.append(1)
        if len(calls) == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(holder, name, awaited if inner.__code__.co_flags & 0x80 else wrapped)


STEPS: dict[str, tuple[Any, str, int]] = {
    "written down": (BatchQueue, "_write", 1),
    "file sent": (BatchQueue, "_call", 1),
    "batch made": (BatchQueue, "_call", 2),
    "submitted": (BatchQueue, "_write", 2),
    "half collected": (ReplyCache, "put", 2),
    "in the ledger": (Ledger, "record", 1),
    "collected": (BatchQueue, "_write", 1),
}


if __name__ == "__main__":
    from flows.cli import main

    die_after(*STEPS[sys.argv[1]])
    sys.argv = ["nest", *sys.argv[2:]]
    main()
