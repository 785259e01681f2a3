"""What a module spent on a sample; goes to `Timing`, never into a prediction."""

from __future__ import annotations

from dataclasses import dataclass

from engine.core.protocols import ChatReply
from engine.core.schema import Timing


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars and tokens of model calls; replies from the cache cost nothing."""

    usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)

    def timing(self, *, sample_id: str, segmenter: str, module: str, seconds: float) -> Timing:
        """The record of one module for one sample."""
        return Timing(
            sample_id=sample_id,
            segmenter=segmenter,
            module=module,
            seconds=seconds,
            usd=self.usd,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
        )


def cost_of(reply: ChatReply) -> Cost:
    """What a reply cost this run."""
    if reply.from_cache:
        return Cost()
    return Cost(usd=reply.usd, tokens_in=reply.tokens_in, tokens_out=reply.tokens_out)
