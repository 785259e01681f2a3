"""IRAG: from a question to an answer, background and reference pictures, out of what could be known at the cut-off.

Query -> pages -> chunks -> candidate answers -> one answer -> reference pictures. Not published by the paper and
decided here: the query is the question without its asking part unless a model rewrites it; five pages; chunks of whole
sentences, 150 words, the six nearest to the question (see `rank`); eight reference pictures. Where the image's own
entities are known (web detection, or a model that sees), the surest candidate among them wins, else the surest at all,
as in the paper. Every hit is checked here again for date and blocked pages, whatever the provider did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engine.core.config import RoseSection
from engine.core.geometry import Image
from engine.core.protocols import ChatModel, EvalItem, ImageHit, Search, TextHit
from engine.core.schema import ModelRef, TraceStep
from engine.web.search.guard import Blocked, in_time
from engine.web.search.vision import ImageEntities
from inference.rose.answer import Candidate, Reader, Reading
from inference.rose.cost import Cost
from inference.rose.likeness import same_picture
from inference.rose.rank import ChunkRanker, PortableTextEmbedder, VectorRanker
from inference.rose.read_llm import rewrite_query
from inference.rose.text import Chunk, fold, rank_chunks, split_chunks
from inference.segmenters.phrases import predicate_of

#: Candidates that go into the trace.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """What retrieval found. `answer` None means that nothing was sure enough; `background` are sentences about it."""

    answer: str | None = None
    candidates: tuple[Candidate, ...] = ()
    background: tuple[str, ...] = ()
    references: tuple[Image, ...] = ()
    trace: tuple[TraceStep, ...] = ()
    cost: Cost = field(default_factory=Cost)


class Irag:
    """Retrieval for one question. `chat` rewrites the query if given, `entities` name what the image shows, `ranker`
    picks the chunks that are read (portable vectors if none is given)."""

    def __init__(
        self,
        search: Search,
        reader: Reader,
        section: RoseSection,
        *,
        chat: ChatModel | None = None,
        entities: ImageEntities | None = None,
        ranker: ChunkRanker | None = None,
    ) -> None:
        self.search = search
        self.reader = reader
        self.section = section
        self.chat = chat
        self.entities = entities
        self.ranker = ranker if ranker is not None else VectorRanker(PortableTextEmbedder())

    def models(self) -> tuple[ModelRef, ...]:
        """Who reads pages, who ranks their chunks, and who says what an image shows."""
        found = [ModelRef(role="reader", name=self.reader.name), ModelRef(role="ranker", name=self.ranker.name)]
        if self.entities is not None:
            found.append(ModelRef(role="entities", name=self.entities.name))
        return tuple(found)

    async def retrieve(self, item: EvalItem) -> Evidence:
        """Evidence for a sample. Raises what the search or the model raise when they are out of reach."""
        notes: list[str] = []
        cost = Cost()
        query: str | None = None
        if self.chat is not None:
            query, cost, remark = await rewrite_query(self.chat, item.question)
            notes += [remark] if remark else []
        query = query or predicate_of(item.question)
        pages = await self.pages(query, item)
        ranked = await self.ranker.rank(item.question, self._chunks(pages), limit=self.section.top_chunks)
        chunks = ranked.chunks
        cost += ranked.cost
        reading = await self.reader.read(item.question, chunks) if chunks else Reading(candidates=())
        cost += reading.cost
        notes += reading.notes
        sure = tuple(c for c in reading.candidates if c.score >= self.section.min_answer_score)
        answer, why = await self._pick(sure, item)
        step = TraceStep(
            module="irag",
            input=query,
            output=answer or "",
            values={
                "provider": self.search.name,
                "reader": self.reader.name,
                "ranker": self.ranker.name,
                "chunks": " ".join(f"{chunk.score:.4f}" for chunk in chunks),
                "pages": " ".join(page.url for page in pages),
                "candidates": "; ".join(f"{c.name} {c.score:.3f}" for c in reading.candidates[:_SHOWN]),
                "chosen_by": why,
                "evidence": next((c.sentence for c in sure if c.name == answer), ""),
                "notes": "; ".join(notes),
            },
        )
        if answer is None:
            return Evidence(candidates=reading.candidates, trace=(step,), cost=cost)
        hits = await self.pictures(answer, item)
        shown = TraceStep(
            module="irag.references",
            input=answer,
            output=f"{len(hits)} reference pictures",
            values={"urls": " ".join(hit.url for hit in hits)},
        )
        return Evidence(
            answer=answer,
            candidates=reading.candidates,
            background=_background(answer, item.question, chunks),
            references=tuple(hit.image for hit in hits),
            trace=(step, shown),
            cost=cost,
        )

    async def pages(self, query: str, item: EvalItem) -> list[TextHit]:
        """Pages for a query that may be known to the sample."""
        hits = await self.search.text(query, limit=self.section.top_pages, until=item.cutoff, blocked=item.blocked)
        guard = Blocked(item.blocked, sites=self.section.blocked_sites)
        return [hit for hit in hits if _may_know(hit.url, hit.published, item.cutoff, guard)]

    async def pictures(self, name: str, item: EvalItem) -> list[ImageHit]:
        """Reference pictures of a name; the sample's own pictures, found elsewhere, are not among them."""
        if self.section.references == 0:
            return []
        hits = await self.search.images(name, limit=self.section.references, until=item.cutoff, blocked=item.blocked)
        guard = Blocked(item.blocked, sites=self.section.blocked_sites)
        return [
            hit
            for hit in hits
            if _may_know(hit.url, hit.published, item.cutoff, guard)
            and not any(same_picture(hit.image, own) for own in item.images)
        ]

    def _chunks(self, pages: Sequence[TextHit]) -> list[Chunk]:
        return [
            chunk
            for page in pages
            for chunk in split_chunks(
                page.text, words=self.section.chunk_words, url=page.url, title=page.title, published=page.published
            )
        ]

    async def _pick(self, sure: Sequence[Candidate], item: EvalItem) -> tuple[str | None, str]:
        if not sure:
            return None, "no candidate is sure enough"
        if self.entities is None:
            return sure[0].name, "confidence"
        seen = {fold(entity.name) for image in item.images for entity in await self.entities.entities(image)}
        for candidate in sure:
            own = fold(candidate.name)
            if any(own == other or f" {own} " in f" {other} " for other in seen):
                return candidate.name, f"in the image, says {self.entities.name}"
        return sure[0].name, f"confidence, {self.entities.name} knows none of the candidates in the image"


def _may_know(url: str, published: datetime | None, cutoff: datetime | None, guard: Blocked) -> bool:
    return in_time(published, cutoff) and url not in guard


def _background(answer: str, question: str, chunks: Sequence[Chunk], *, limit: int = 3) -> tuple[str, ...]:
    """Sentences that name the answer, those of the best chunks first."""
    words = fold(answer).split()
    found: list[str] = []
    for chunk in rank_chunks(f"{answer} {question}", chunks, limit=len(chunks)):
        for sentence in chunk.sentences:
            told = fold(sentence)
            if sentence not in found and (fold(answer) in told or (len(words) > 1 and words[-1] in told.split())):
                found.append(sentence)
    return tuple(found[:limit])
