"""Whether what answers at an address is a model endpoint at all, and saying so while it does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.core.protocols import ChatReply, ChatRequest
from engine.llm.endpoint import Answer
from engine.llm.wire import Outcome

#: So many answers in a row without one chat completion bring the endpoint under suspicion.
SUSPICIOUS = 8
#: So many failed tries in a row, of all requests together, are worth a word; the next one at least so much later.
WORTH_A_WORD, QUIET_S = 2, 30.0
#: A wait this long is worth a word at once.
LONG_WAIT_S = 15.0


def is_completion(outcome: Outcome) -> bool:
    """Whether a model spoke: a refusal or a cut text is a completion, no choices or no content is none."""
    return outcome.status not in ("error", "empty")


@dataclass
class Standing:
    """What one client has seen of its endpoint.

    The rule: an unusable answer (HTML, garbage, nothing, no choices, no content, a final HTTP error) is the loss of
    its item, never a sample and never asked for without end, as long as the endpoint gives chat completions too. It
    is held against the endpoint when a request is given up and the last `SUSPICIOUS` answers brought no completion,
    or at the end of the work (`OpenAIChat.vouch`) when no answer did, however few they were. Then a request that got
    a completion before, live or in the cache, is sent once more: a completion clears the endpoint and the losses stay
    losses, so that a few bad items cannot hold up a stage for ever. Anything else, or no such request, is a
    `TransientError`: the losses since the last completion do not count (`doubtful` says that there are some, a stage
    keeps its shards back meanwhile), replies without content are not stored, and what was good stays in the cache.
    """

    completions: int = 0
    bad_in_row: int = 0
    last_bad: str = ""
    witness: ChatRequest | None = None
    held: dict[str, tuple[ChatReply, dict[str, Any] | None]] = field(default_factory=dict)

    def good(self, request: ChatRequest) -> None:
        self.completions += 1
        self.bad_in_row = 0
        self.witness = self.witness or request

    def bad(self, what: str) -> None:
        self.bad_in_row += 1
        self.last_bad = what


def what_it_is(answer: Answer, outcome: Outcome) -> str:
    """An unusable 200 in a few words."""
    body = answer.body.strip()
    if not body:
        return "an empty body"
    if body[:1] == b"<" or "html" in answer.headers.get("content-type", ""):
        return "HTML"
    if answer.json() is None:
        return "something that is not a JSON object"
    if outcome.status == "empty":
        return "replies without content"
    return f"JSON without a reply in it ({outcome.detail})"


def _log(text: str) -> None:
    logging.getLogger("nest.llm").warning(text)


@dataclass
class Silence:
    """Says that an endpoint does not answer: after `WORTH_A_WORD` failed tries in a row, then at most each
    `QUIET_S`. `tell` takes the line."""

    where: str
    tell: Callable[[str], None] = _log
    in_row: int = 0
    _told: float | None = None

    def broken(self) -> None:
        """An answer came."""
        self.in_row = 0

    def failed(self, cause: str, *, wait: float, left: float, now: float) -> None:
        """One more failed try; `left` are the seconds until its request is given up."""
        self.in_row += 1
        if self.in_row < WORTH_A_WORD and wait < LONG_WAIT_S:
            return
        if self._told is not None and now - self._told < QUIET_S:
            return
        self._told = now
        self.tell(
            f"the model endpoint {self.where} does not answer ({cause}): trying again in {wait:.0f} s, giving up in "
            f"{max(left, 0.0):.0f} s at the latest"
        )
