"""What publishing needs: a token that may write, and an address for removals."""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.core.config import Config
from flows.doctor.finding import Finding
from flows.doctor.keys import hub_access


def hub(config: Config) -> Iterator[Finding]:
    """Whether snapshots can be pushed to where the configuration says."""
    if not config.hub.repo:
        yield Finding("good", "no [hub] repo: snapshots stay here")
        return
    if not os.environ.get("HF_TOKEN"):
        yield Finding("bad", "HF_TOKEN is not set", "export a token that may write to the repository")
    yield from hub_access(config)
    if not config.snapshot.contact:
        yield Finding("bad", "[snapshot] contact is empty", "a published snapshot names where a removal is asked for")
