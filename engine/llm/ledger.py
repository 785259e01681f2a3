"""What a run paid, per purpose, and the limits that stop it before it pays more.

One ledger serves language models, vision and search calls, so that one budget covers them all. Each paid call is one
line in `<folder>/<YYYY-MM>.jsonl`, written before its result is used; the month's limit is held against that file, so
it counts what other runs paid as well. Money is never guessed: with a limit in money, a model without a price is a
`ConfigError`. Ledgers are no data: nothing here goes into a digest.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from engine.core.config import LlmSection
from engine.core.errors import BudgetSpent, ConfigError
from engine.core.schema import canonical_json
from engine.core.store.files import disk_error
from engine.llm.meter import CallMeter

Kind = Literal["llm", "vision", "search"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls; `unpriced` counts calls whose price is not known (their money is in no sum)."""

    requests: int = 0
    failed: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0
    seconds: float = 0.0

    def plus(self, other: Totals) -> Totals:
        return Totals(
            self.requests + other.requests,
            self.failed + other.failed,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.usd + other.usd,
            self.unpriced + other.unpriced,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run in US dollars and tokens, and of one calendar month (UTC) in US dollars; None is no limit."""

    max_usd: float | None = None
    max_tokens: int | None = None
    monthly_usd: float | None = None


class Ledger:
    """Sums of one run in memory and, with a folder, every paid call on disk.

    `prices` are US dollars per million tokens, in and out, by model id; `now` gives aware UTC.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        prices: Mapping[str, tuple[float, float]] | None = None,
        limits: Limits | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.folder = folder
        self.prices = dict(prices or {})
        self.call_prices: dict[str, float] = {}
        self.limits = limits or Limits()
        self._now = now
        self._by_purpose: dict[str, Totals] = {}
        self._holds = 0
        self._held_usd = 0.0
        self._held_tokens = 0
        self._changed: asyncio.Condition | None = None
        self._month: tuple[str, int, float] = ("", 0, 0.0)

    @classmethod
    def of(cls, config: LlmSection, folder: Path | None = None) -> Ledger:
        """The ledger that a config's limits and prices ask for."""
        ledger = cls(folder)
        ledger.adopt(config)
        return ledger

    def adopt(self, config: LlmSection) -> None:
        """Take over a config's prices and limits where this ledger has none of its own."""
        self.prices = {**config.prices, **self.prices}
        self.call_prices = {**config.call_prices, **self.call_prices}
        own = self.limits
        self.limits = Limits(
            config.max_usd if own.max_usd is None else own.max_usd,
            config.max_tokens if own.max_tokens is None else own.max_tokens,
            config.monthly_usd if own.monthly_usd is None else own.monthly_usd,
        )

    # ------------------------------------------------------------ prices

    @property
    def limits_money(self) -> bool:
        return self.limits.max_usd is not None or self.limits.monthly_usd is not None

    def require_price(self, model: str) -> None:
        """Raise `ConfigError` if there is a limit in money and the model's price is not known."""
        if self.limits_money and model not in self.prices:
            raise ConfigError(
                f"a limit in money is set, and the price of '{model}' is not known: add it to [llm.prices] as "
                "[US dollars per million tokens in, out], or use max_tokens"
            )

    def meter(self, service: str, kind: Literal["search", "vision"]) -> CallMeter:
        """What pays for a service's calls. Raises `ConfigError` if there is a limit in money and no price per call."""
        if self.limits_money and service not in self.call_prices:
            raise ConfigError(
                f"a limit in money is set, and the price of a call of '{service}' is not known: add it to "
                "[llm.call_prices] in US dollars (0 if it is free for you)"
            )
        return CallMeter(self, service, kind=kind, usd=self.call_prices.get(service))

    def price(self, model: str, tokens_in: int, tokens_out: int, *, discount: float = 1.0) -> float | None:
        """US dollars of that many tokens, None if the model has no price."""
        if model not in self.prices:
            return None
        per_in, per_out = self.prices[model]
        return discount * (tokens_in * per_in + tokens_out * per_out) / 1_000_000

    # ------------------------------------------------------------ spending

    def spent(self) -> Totals:
        """All of this run so far."""
        total = Totals()
        for part in self._by_purpose.values():
            total = total.plus(part)
        return total

    def by_purpose(self) -> dict[str, Totals]:
        return dict(sorted(self._by_purpose.items()))

    def summary(self) -> dict[str, dict[str, float | int]]:
        """The run's sums by purpose and in `total`, as plain JSON for `run.json`."""
        return {name: asdict(part) for name, part in [*self.by_purpose().items(), ("total", self.spent())]}

    def month_usd(self) -> float:
        """US dollars of the current month over all runs that share the folder."""
        if self.folder is None:
            return self.spent().usd
        path = self._month_file()
        name, offset, total = self._month
        if name != path.name:
            offset, total = 0, 0.0
        try:
            with path.open("rb") as handle:
                handle.seek(offset)
                new = handle.read()
        except FileNotFoundError:
            new = b""
        whole = new[: new.rfind(b"\n") + 1]
        total += sum(_usd_of(line) for line in whole.splitlines())
        self._month = (path.name, offset + len(whole), total)
        return total

    async def hold(self, *, usd: float | None, tokens: int) -> None:
        """Set aside what a call may cost at most, before it is made; `release` gives it back.

        Waits while calls under way hold what is left; raises `BudgetSpent` if even without them it is too little.
        """
        if self._changed is None:
            self._changed = asyncio.Condition()
        async with self._changed:
            while (reason := self._over(usd or 0.0, tokens)) is not None:
                if self._holds == 0:
                    raise BudgetSpent(reason)
                await self._changed.wait()
            self._holds += 1
            self._held_usd += usd or 0.0
            self._held_tokens += tokens

    async def release(self, *, usd: float | None, tokens: int) -> None:
        """Give back what `hold` set aside."""
        assert self._changed is not None
        async with self._changed:
            self._holds -= 1
            self._held_tokens -= tokens
            # floats do not come back to zero by themselves
            self._held_usd = max(0.0, self._held_usd - (usd or 0.0)) if self._holds else 0.0
            self._changed.notify_all()

    def check(self, *, usd: float = 0.0) -> None:
        """For callers that wait for nothing (search, vision): raise `BudgetSpent` if `usd` more is too much."""
        reason = self.too_much(usd=usd)
        if reason is not None:
            raise BudgetSpent(reason)

    def too_much(self, *, usd: float = 0.0, tokens: int = 0) -> str | None:
        """Why that much more would pass a limit, or None."""
        return self._over(usd, tokens)

    def record(
        self,
        *,
        kind: Kind,
        purpose: str,
        model: str,
        tokens_in: int = 0,
        tokens_out: int = 0,
        usd: float | None = 0.0,
        seconds: float = 0.0,
        failed: bool = False,
        requests: int = 1,
        reference: str = "",
    ) -> None:
        """Count calls that were made; `usd` None means that their price is not known.

        With a `reference` (a batch's id) they are counted once, whatever is killed in between.
        """
        if reference and self._is_entered(reference):
            return
        part = Totals(requests, int(failed), tokens_in, tokens_out, usd or 0.0, int(usd is None), seconds)
        self._by_purpose[purpose] = self._by_purpose.get(purpose, Totals()).plus(part)
        if self.folder is None:
            return
        line = canonical_json(
            {
                "at": self._now().isoformat(timespec="seconds"),
                "kind": kind,
                "purpose": purpose,
                "model": model,
                "requests": requests,
                "failed": failed,
                "tokens_in": tokens_in,
                "tokens_out": tokens_out,
                "usd": usd,
                "seconds": round(seconds, 3),
                **({"reference": reference} if reference else {}),
            }
        )
        _append(self._month_file(), line)

    def _over(self, usd: float, tokens: int) -> str | None:
        limits, total = self.limits, self.spent()
        used = total.tokens_in + total.tokens_out + self._held_tokens
        if limits.max_tokens is not None and used + tokens > limits.max_tokens:
            done = total.tokens_in + total.tokens_out
            return f"the run's limit of {limits.max_tokens} tokens is reached ({done} used): raise it to go on"
        if limits.max_usd is not None and total.usd + self._held_usd + usd > limits.max_usd:
            return f"the run's limit of ${limits.max_usd:.2f} is reached (${total.usd:.4f} spent): raise it to go on"
        if limits.monthly_usd is not None:
            month = self.month_usd()
            if month + self._held_usd + usd > limits.monthly_usd:
                return (
                    f"the month's limit of ${limits.monthly_usd:.2f} is reached (${month:.4f} spent): raise it, or "
                    "run again next month"
                )
        return None

    def _is_entered(self, reference: str) -> bool:
        if self.folder is None:
            return False
        wanted = f'"reference":{json.dumps(reference)}'.encode()
        return any(wanted in path.read_bytes() for path in sorted(self.folder.glob("*.jsonl")))

    def _month_file(self) -> Path:
        assert self.folder is not None
        return self.folder / f"{self._now():%Y-%m}.jsonl"


def _usd_of(line: bytes) -> float:
    try:
        return float(json.loads(line).get("usd") or 0.0)
    except (ValueError, AttributeError):
        return 0.0  # a line cut by a full disk; the call before it is in the run's own sums


def _append(path: Path, line: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            # one write, so that runs side by side do not mix their lines
            os.write(fd, line.encode() + b"\n")
        finally:
            os.close(fd)
    except OSError as error:
        raise disk_error(path, error) from error
