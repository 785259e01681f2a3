"""The Batch API as a way to pay half for backfills: submit, leave, come back, collect, over the same reply cache.

A planning run (`engine.llm.plan`) notes what lacks in the cache. `BatchQueue` sends that as batches and puts their
results into the cache; then the ordinary run finds every reply there. Each step is
written down before the next, so a kill anywhere neither loses nor pays anything twice: a batch that was made but not
written down is found again by the key in its metadata.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from engine.core.errors import BudgetSpent, ConfigError, TransientError
from engine.core.protocols import ChatRequest
from engine.core.store import sha256_bytes, write_atomic
from engine.llm import wire
from engine.llm.asking import STORED, outcome_of, reply_of, tokens_of
from engine.llm.client import OpenAIChat
from engine.llm.endpoint import redirect
from engine.llm.stopping import KEY_VARIABLE
from engine.llm.submissions import Submission, read_submission, submission_of

#: What a batch costs of the live price (OpenAI's published discount).
DISCOUNT = 0.5
#: OpenAI's limits of one batch are 50,000 requests and 200 MB.
MAX_REQUESTS, MAX_BYTES = 50_000, 180_000_000
#: A request that failed in this many batches is left to the live client.
MAX_TRIES = 2
_FINAL = frozenset({"completed", "failed", "expired", "cancelled"})
_KEY = "nest_key"
_HAS_IT = "does it have a Batch API? Run without --batch otherwise"


@dataclass(frozen=True, slots=True)
class Progress:
    """One visit: wanted requests that wait in open batches, replies collected, requests failed, sent, given up."""

    waiting: int
    collected: int
    failed: int
    submitted: int
    given_up: int


class BatchQueue:
    """Batches of one endpoint, kept in `folder`; `chat` gives endpoint, cache, prices and limits."""

    def __init__(self, chat: OpenAIChat, *, folder: Path) -> None:
        self.chat = chat
        self.folder = folder
        self._dialect = wire.Dialect.of(chat.config)
        self._told = f"the batch service of {chat.endpoint.url} answered"

    async def advance(self, wanted: Mapping[str, ChatRequest]) -> Progress:
        """One visit: collect what is ready, then submit what of `wanted` is neither answered nor under way.

        Raises `BudgetSpent` before submitting what the limits do not allow, `TransientError` and `ConfigError` as
        the live client does.
        """
        collected = failed = 0
        for submission in self.submissions():
            if submission.open:
                good, bad = await self._visit(submission)
                collected, failed = collected + good, failed + bad
        known = self.submissions()
        under_way = {digest for item in known if item.open for digest in item.requests}
        tries = Counter(digest for item in known for digest in item.failed)
        missing = {
            digest: request
            for digest, request in sorted(wanted.items())
            if digest not in under_way and self.chat.cache.get(digest) is None
        }
        todo = {digest: request for digest, request in missing.items() if tries[digest] < MAX_TRIES}
        for part in self._parts(todo):
            await self._submit(part)
        out = {digest for item in self.submissions() if item.open for digest in item.requests}
        waiting = sum(digest in out for digest in wanted)
        return Progress(waiting, collected, failed, len(todo), len(missing) - len(todo))

    def submissions(self) -> list[Submission]:
        """All batches written down, by key."""
        return [read_submission(path) for path in sorted(self.folder.glob("*.json"))]

    # ------------------------------------------------------------ out

    def _parts(self, todo: Mapping[str, ChatRequest]) -> list[dict[str, ChatRequest]]:
        """Cut by the limits of a batch; raises `BudgetSpent` if the whole does not fit into what is left."""
        tokens_in = sum(wire.estimate_tokens(request) for request in todo.values())
        tokens_out = sum(request.max_tokens for request in todo.values())
        usd = self.chat.ledger.price(self.chat.name, tokens_in, tokens_out, discount=DISCOUNT)
        reason = self.chat.ledger.too_much(usd=usd or 0.0, tokens=tokens_in + tokens_out) if todo else None
        if reason is not None:
            raise BudgetSpent(f"a batch of {len(todo)} requests may cost too much: {reason}")
        parts: list[dict[str, ChatRequest]] = []
        size = MAX_BYTES
        for digest, request in todo.items():
            weight = len(json.dumps(self._body(request)))
            if size + weight > MAX_BYTES or len(parts[-1]) >= MAX_REQUESTS:
                parts.append({})
                size = 0
            parts[-1][digest] = request
            size += weight
        return parts

    async def _submit(self, part: Mapping[str, ChatRequest]) -> None:
        """Write the batch down, send it, write down its id; `_visit` mends what a kill left in between."""
        turn = sum(1 for _ in self.folder.glob("*.json")) if self.folder.is_dir() else 0
        key = sha256_bytes("\n".join([str(turn), *part]).encode())[:24]
        submission = self._write(submission_of(key, part))
        client = self.chat.endpoint.client()
        lines = "".join(self._line(digest, request) for digest, request in part.items())
        file = await self._call(
            client.files.create(file=(f"nest-{key}.jsonl", io.BytesIO(lines.encode())), purpose="batch")
        )
        batch = await self._call(
            client.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions" if self.chat.config.api == "chat" else "/v1/responses",
                completion_window="24h",
                metadata={_KEY: key},
            )
        )
        self._write(replace(submission, batch_id=str(batch.id), state="submitted"))

    async def _find(self, key: str) -> str | None:
        """A batch of ours that was made before a kill could write it down."""
        page = await self._call(self.chat.endpoint.client().batches.list(limit=100), needs="data")
        while True:
            for batch in page.data:
                if (batch.metadata or {}).get(_KEY) == key:
                    return str(batch.id)
            if not page.has_next_page():
                return None
            page = await self._call(page.get_next_page(), needs="data")

    def _line(self, digest: str, request: ChatRequest) -> str:
        url = "/v1/chat/completions" if self.chat.config.api == "chat" else "/v1/responses"
        told = {"custom_id": digest, "method": "POST", "url": url, "body": self._body(request)}
        return json.dumps(told) + "\n"

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        return wire.body_of(request, self.chat.config, self._dialect)

    # ------------------------------------------------------------ back

    async def _visit(self, submission: Submission) -> tuple[int, int]:
        """Look after one batch; returns how many replies came and how many requests failed."""
        if submission.state == "prepared":
            found = await self._find(submission.key)
            if found is None:  # killed before it was made: its requests are wanted still and go out anew
                self._path(submission.key).unlink()
                return 0, 0
            submission = self._write(replace(submission, batch_id=found, state="submitted"))
        client = self.chat.endpoint.client()
        try:
            batch = await self._call(client.batches.retrieve(submission.batch_id))
        except _Gone:  # of another account by now, or removed there: what it was asked for goes out anew
            failed = dict.fromkeys(submission.requests, "the endpoint knows the batch no more")
            self._write(replace(submission, state="collected", failed=failed))
            return 0, len(failed)
        if batch.status not in _FINAL:
            return 0, 0
        reason = f"the batch is {batch.status}"
        if batch.errors and batch.errors.data:
            reason = str(batch.errors.data[0].message or reason)[:300]
            self._learn(reason)
        failed = dict.fromkeys(submission.requests, reason)
        spent = _Spent()
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id:
                # by line feeds alone: other separators may stand inside a reply
                for line in (await self._content(file_id)).split("\n"):
                    self._take(line, submission, failed, spent)
        self.chat.ledger.record(
            kind="llm",
            purpose="batch",
            model=self.chat.name,
            tokens_in=spent.tokens_in,
            tokens_out=spent.tokens_out,
            usd=self.chat.ledger.price(self.chat.name, spent.tokens_in, spent.tokens_out, discount=DISCOUNT),
            requests=spent.requests,
            reference=submission.batch_id,
        )
        self._write(replace(submission, state="collected", failed=failed))
        return len(submission.requests) - len(failed), len(failed)

    async def _content(self, file_id: str) -> str:
        try:
            found = await self._call(self.chat.endpoint.client().files.content(file_id), needs="response")
        except _Gone:  # results are kept for a while only
            return ""
        if found.text.lstrip().startswith("<"):
            raise ConfigError(f"{self._told} with HTML for a result file: {_HAS_IT}")
        return str(found.text)

    def _take(self, line: str, submission: Submission, failed: dict[str, str], spent: _Spent) -> None:
        """One line of a result file into the cache; what is no reply stays failed, with its reason."""
        try:
            found = json.loads(line)
            digest, answer = str(found["custom_id"]), found.get("response") or {}
        except (ValueError, KeyError, AttributeError):
            return
        if digest not in submission.requests:
            return
        if answer.get("status_code") != 200:
            error = found.get("error") or (answer.get("body") or {}).get("error") or {}
            failed[digest] = str(error.get("message") or error.get("code") or answer.get("status_code"))[:300]
            self._learn(failed[digest])
            return
        body = answer.get("body")
        outcome = outcome_of(body if isinstance(body, dict) else None, self.chat.config)
        name, guessed = submission.requests[digest]
        tokens_in, tokens_out = tokens_of(outcome, guessed_in=guessed)
        spent.add(tokens_in, tokens_out)
        usd = self.chat.ledger.price(self.chat.name, tokens_in, tokens_out, discount=DISCOUNT)
        schema = submission.schemas.get(name)
        reply = reply_of(outcome, schema=schema, guessed_in=guessed, model=self.chat.name, usd=usd)
        if reply.status not in STORED:
            failed[digest] = reply.detail
            return
        self.chat.cache.put(digest, reply, raw=body)
        failed.pop(digest, None)

    def _learn(self, complaint: str) -> None:
        """The next batch asks in a way that this server takes."""
        pinned = self.chat.config.structured != "auto"
        self._dialect = wire.adapt(self._dialect, complaint, pinned=pinned) or self._dialect

    async def _call(self, waiting: Any, *, needs: str = "id") -> Any:
        """What the SDK makes of an answer; it must have a value in `needs`, which only an answer in JSON has."""
        import openai

        told = self._told
        foreign = ConfigError(f"{told} with something else than a batch service does: {_HAS_IT}")
        try:
            found = await waiting
        except openai.APIStatusError as error:
            told = f"{told} {error.status_code}"
            if (location := redirect(error.response)) is not None:
                raise ConfigError(f"{told} after a redirect to {location}: check [llm] base_url") from error
            if error.status_code in (401, 403):
                raise ConfigError(f"{told}: check the key in {KEY_VARIABLE}") from error
            if error.status_code in (404, 405, 501):
                raise _Gone(f"{told}: {_HAS_IT}") from error
            raise TransientError(f"{told}: run again later") from error
        except openai.APIConnectionError as error:
            raise TransientError(f"the batch service of {self.chat.endpoint.url} gave no answer: {error}") from error
        except (AttributeError, TypeError, ValueError, openai.APIError) as error:
            # the SDK's types do not survive a body that is no JSON object
            raise foreign from error
        value = getattr(found, needs, None)
        if value is None or value == "" or isinstance(found, str | list):
            raise foreign
        return found

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _write(self, submission: Submission) -> Submission:
        write_atomic(self._path(submission.key), json.dumps(asdict(submission), sort_keys=True).encode())
        return submission


class _Gone(ConfigError):
    """The endpoint knows no such batch or file, or has no batches at all."""


@dataclass(slots=True)
class _Spent:
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, tokens_in: int, tokens_out: int) -> None:
        self.requests += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
