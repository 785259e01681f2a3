"""Calls with a price each (search, web detection) in the same ledger as the language models' tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from engine.llm.ledger import Ledger


class CallMeter:
    """The `Meter` of one service; `usd` is what an answered call costs, None if no limit asks for that."""

    def __init__(self, ledger: Ledger, service: str, *, kind: Literal["search", "vision"], usd: float | None) -> None:
        self.ledger = ledger
        self.service = service
        self.kind = kind
        self.usd = usd

    async def hold(self) -> None:
        """Raises `BudgetSpent` if the call would pass a limit."""
        await self.ledger.hold(usd=self.usd, tokens=0)

    async def settle(self, *, answered: bool, seconds: float) -> None:
        """Pay an answered call, count another as failed, and give back what was held."""
        self.ledger.record(
            kind=self.kind,
            purpose=self.kind,
            model=self.service,
            usd=self.usd if answered else 0.0,
            seconds=seconds,
            failed=not answered,
        )
        await self.ledger.release(usd=self.usd, tokens=0)
