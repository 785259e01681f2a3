"""Reading answers with a chat model, by map and reduce: each passage on its own, then one list of candidates.

Also the query rewriting, which is the model's other job in retrieval. A reply that is not "ok" costs its passage, is
noted, and never becomes an answer. Names that stand in no passage are dropped: the model may choose, not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from engine.core.protocols import ChatModel, ChatReply, ChatRequest
from engine.llm.prompts import load_prompt
from inference.rose.answer import Candidate, Reading
from inference.rose.cost import Cost, cost_of
from inference.rose.text import Chunk, fold
from inference.segmenters.phrases import noun_of

REWRITE, MAP, REDUCE = "rewrite_v1", "map_v1", "reduce_v1"


class LlmReader:
    """The reader that asks a chat model; `parallel` passages of one question at a time."""

    def __init__(self, chat: ChatModel, *, parallel: int = 4) -> None:
        self.name = f"llm-1:{chat.name}"
        self.chat = chat
        self.parallel = parallel

    async def read(self, question: str, chunks: Sequence[Chunk]) -> Reading:
        """Candidates over all passages. One candidate needs no reduce call."""
        gate = asyncio.Semaphore(self.parallel)

        async def one(chunk: Chunk) -> ChatReply:
            async with gate:
                return await self.chat.complete(_map_request(question, chunk))

        replies = await asyncio.gather(*(one(chunk) for chunk in chunks))
        cost = sum((cost_of(reply) for reply in replies), Cost())
        notes: list[str] = []
        found: list[Candidate] = []
        for chunk, reply in zip(chunks, replies, strict=True):
            if reply.status != "ok":
                notes.append(f"{chunk.url}: the reply is {reply.status}")
                continue
            for name, score, quote in _entries(reply.data, "answers"):
                if fold(name) in fold(f"{chunk.title} {chunk.text}"):
                    found.append(Candidate(name=name, score=score, sentence=quote, url=chunk.url))
                else:
                    notes.append(f"{chunk.url}: '{name}' is not in the passage")
        if len({fold(candidate.name) for candidate in found}) < 2:
            return Reading(candidates=tuple(_best(found)), cost=cost, notes=tuple(notes))
        reply = await self.chat.complete(_reduce_request(question, found))
        cost += cost_of(reply)
        if reply.status != "ok":
            notes.append(f"the reducing reply is {reply.status}: the passages' own order is kept")
            return Reading(candidates=tuple(_best(found)), cost=cost, notes=tuple(notes))
        told = {fold(candidate.name): candidate for candidate in _best(found)}
        kept: list[Candidate] = []
        for name, score, _ in _entries(reply.data, "candidates"):
            known = told.get(fold(name))
            if known is None:
                notes.append(f"'{name}' was not among the candidates")
            elif known.name not in {candidate.name for candidate in kept}:
                kept.append(Candidate(name=known.name, score=score, sentence=known.sentence, url=known.url))
        ordered = sorted(kept, key=lambda candidate: (-candidate.score, candidate.name))
        return Reading(candidates=tuple(ordered), cost=cost, notes=tuple(notes))


async def rewrite_query(chat: ChatModel, question: str) -> tuple[str | None, Cost, str]:
    """A search query for the question, its cost, and a remark if there is none."""
    system, user = load_prompt("inference.rose", REWRITE).fill(question=question)
    schema = {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
        "additionalProperties": False,
    }
    request = ChatRequest(
        system=system, user=user, schema=schema, schema_name="query", max_tokens=200, purpose="rose.rewrite"
    )
    reply = await chat.complete(request)
    query = " ".join(str((reply.data or {}).get("query", "")).split())
    if reply.status != "ok" or not query:
        return None, cost_of(reply), f"no query from the model ({reply.status})"
    return query, cost_of(reply), ""


def _map_request(question: str, chunk: Chunk) -> ChatRequest:
    system, user = load_prompt("inference.rose", MAP).fill(
        question=question, noun=noun_of(question), title=chunk.title, passage=chunk.text
    )
    return ChatRequest(
        system=system,
        user=user,
        schema=_list_schema("answers", quote=True),
        schema_name="answers",
        max_tokens=600,
        purpose="rose.map",
    )


def _reduce_request(question: str, found: Sequence[Candidate]) -> ChatRequest:
    listed = "\n".join(f"- {c.name} (confidence {c.score:.2f}): {c.sentence}" for c in found)
    system, user = load_prompt("inference.rose", REDUCE).fill(question=question, candidates=listed)
    return ChatRequest(
        system=system,
        user=user,
        schema=_list_schema("candidates", quote=False),
        schema_name="candidates",
        max_tokens=600,
        purpose="rose.reduce",
    )


def _list_schema(key: str, *, quote: bool) -> dict[str, object]:
    fields: dict[str, object] = {"name": {"type": "string"}, "confidence": {"type": "number"}}
    if quote:
        fields["quote"] = {"type": "string"}
    entry = {"type": "object", "properties": fields, "required": sorted(fields), "additionalProperties": False}
    return {
        "type": "object",
        "properties": {key: {"type": "array", "items": entry}},
        "required": [key],
        "additionalProperties": False,
    }


def _entries(data: Mapping[str, object] | None, key: str) -> list[tuple[str, float, str]]:
    """(name, confidence within 0 to 1, quote) of the list in a reply; entries of another shape are left out."""
    listed = (data or {}).get(key)
    found: list[tuple[str, float, str]] = []
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict):
            continue
        name, sure = " ".join(str(entry.get("name", "")).split()), entry.get("confidence")
        if name and isinstance(sure, int | float) and not isinstance(sure, bool):
            found.append((name, min(1.0, max(0.0, float(sure))), " ".join(str(entry.get("quote", "")).split())))
    return found


def _best(found: Sequence[Candidate]) -> list[Candidate]:
    """One candidate per name, the surest, best first."""
    best: dict[str, Candidate] = {}
    for candidate in found:
        key = fold(candidate.name)
        if key not in best or candidate.score > best[key].score:
            best[key] = candidate
    return sorted(best.values(), key=lambda candidate: (-candidate.score, candidate.name))
