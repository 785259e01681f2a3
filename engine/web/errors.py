"""The one exception of a URL that cannot be had. What became of it is a `Code`, so that the funnel can count it."""

from __future__ import annotations

from engine.core.schema import Code


class FetchError(Exception):
    """`code` says why in the closed list, `detail` what was found, without times and ports (it is written to disk)."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(f"{code.value}: {detail}")
        self.code = code
        self.detail = detail
