"""What must not be known never reaches a prompt: later pages, undated ones, the source article, the dataset's pages.

Once with a provider that ignores cut-off and blocked pages altogether, so that ROSE's own guard is what is tested, and
once through the local index with near copies.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.config import RoseSection
from engine.core.protocols import ChatReply, ChatRequest, EvalItem, ImageHit, TextHit
from engine.core.schema import Article
from engine.core.store import BlobStore
from engine.web.search.local import LocalIndex
from inference.rose.answer import ExtractReader
from inference.rose.irag import Irag
from inference.rose.read_llm import LlmReader
from inference.rose.tpe import enhance
from inference.segmenters.base import Wording

CUTOFF = datetime(2026, 3, 6, tzinfo=UTC)
SOURCE = "https://northvale.example/n/bridge"
QUESTION = "Which person in the image opened the bridge?"
IMAGE = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
ITEM = EvalItem(sample_id="s", question=QUESTION, images=(IMAGE,), cutoff=CUTOFF, blocked=(SOURCE,))

ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
AROUND = st.integers(-3 * 86400, 3 * 86400).map(lambda seconds: CUTOFF + timedelta(seconds=seconds))
DATES = st.one_of(st.none(), st.sampled_from([CUTOFF, CUTOFF - timedelta(microseconds=1)]), AROUND)
URLS = st.sampled_from(
    [
        "https://x.example/{n}",
        "https://y.example/{n}?id={n}",
        "http://www.northvale.example/n/bridge/?utm_source={n}",
        "https://m.northvale.example/n/bridge#{n}",
        "https://amp.northvale.example/n/bridge?fbclid={n}",
        "https://huggingface.co/datasets/some/NEST/viewer?row={n}",
    ]
)
PAGES = st.lists(st.tuples(DATES, ZONES, URLS), min_size=1, max_size=6)


def forbidden(url: str, published: datetime | None) -> bool:
    return published is None or published >= CUTOFF or "northvale" in url or "huggingface" in url


class Listening:
    """A chat model that keeps every request, and answers each passage with the name in it."""

    name = "listening"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        if request.schema_name == "query":
            return ChatReply("ok", data={"query": "who opened the bridge"})
        key = request.schema_name
        names = [word for word in request.user.replace(".", " ").split() if word.startswith("Quist")]
        return ChatReply("ok", data={key: [{"name": n, "confidence": 0.9, "quote": "q"} for n in dict.fromkeys(names)]})


class Leaky:
    """A provider that gives everything it has, whatever it is asked not to."""

    name = "leaky"

    def __init__(self, pages: Sequence[TextHit], pictures: Sequence[ImageHit] = ()) -> None:
        self._pages, self._pictures = list(pages), list(pictures)

    async def text(self, query: str, **_: object) -> list[TextHit]:
        return self._pages

    async def images(self, query: str, **_: object) -> list[ImageHit]:
        return self._pictures


@settings(max_examples=150, deadline=None)
@given(PAGES)
def test_not_even_a_provider_that_leaks_reaches_a_prompt(drawn: list[tuple[datetime | None, timezone, str]]) -> None:
    hits, pictures = [], []
    for n, (instant, zone, url) in enumerate(drawn):
        published = instant.astimezone(zone) if instant is not None else None
        address = url.format(n=n)
        hits.append(TextHit(address, f"Title Quist{n}", f"Quist{n} opened the bridge on a day.", published))
        shade = np.full((16, 16, 3), n, np.uint8)
        pictures.append(ImageHit(f"{address}#{n}.jpg", f"Quist{n}", shade, published))
    chat = Listening()
    irag = Irag(Leaky(hits, pictures), LlmReader(chat), RoseSection(), chat=chat)
    evidence = asyncio.run(irag.retrieve(ITEM))
    prompt = enhance(QUESTION, evidence.answer, evidence.background, wording=Wording(), prompt_chars=600)
    seen = " ".join(
        [request.system + request.user for request in chat.requests]
        + [step.model_dump_json() for step in evidence.trace]
        + [prompt.text]
    )
    shown = {int(image[0, 0, 0]) for image in evidence.references}
    for n, hit in enumerate(hits):
        if forbidden(hit.url, hit.published):
            assert f"Quist{n}" not in seen
            assert n not in shown
    allowed = [n for n, hit in enumerate(hits) if not forbidden(hit.url, hit.published)]
    assert (evidence.answer is not None) == bool(allowed)
    assert set(allowed) == shown


@settings(max_examples=15, deadline=None)
@given(drawn=PAGES, day_only=st.booleans(), copies=st.booleans())
def test_the_local_index_keeps_them_back_too(
    drawn: list[tuple[datetime | None, timezone, str]], day_only: bool, copies: bool
) -> None:
    own = "Mara Quistown opened the bridge on Wednesday before four hundred guests, and spoke of years of building it."
    articles = [article("own", SOURCE, own, CUTOFF - timedelta(days=1))]
    if copies:
        articles.append(article("copy", "https://z.example/c", f"From our staff. {own}", CUTOFF - timedelta(days=1)))
    late: list[int] = []
    for n, (instant, zone, _) in enumerate(drawn):
        published = instant.astimezone(zone) if instant is not None else None
        precision = "second"
        if day_only and published is not None:
            published = published.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            precision = "day"
        words = " ".join(f"w{n}x{k}" for k in range(8))
        text = f"Mara Quist{chr(97 + n)}n opened the bridge, it says in {words}."
        articles.append(article(f"a{n}", f"https://x.example/{n}", text, published, precision=precision))
        last = published + timedelta(days=1, microseconds=-1) if published and day_only else published
        if last is None or last >= CUTOFF:
            late.append(n)
    with tempfile.TemporaryDirectory() as folder:
        index = LocalIndex.build(Path(folder) / "i.sqlite", articles, blobs=BlobStore(Path(folder) / "blobs"))
        evidence = asyncio.run(Irag(index, ExtractReader(), RoseSection(top_pages=20)).retrieve(ITEM))
        index.close()
    seen = " ".join(step.model_dump_json() for step in evidence.trace)
    assert "Quistown" not in seen
    assert not [n for n in late if f"Quist{chr(97 + n)}n" in seen]
    if len(late) < len(drawn):
        assert evidence.answer is not None


def article(name: str, url: str, text: str, published: datetime | None, *, precision: str = "second") -> Article:
    return Article.model_validate(
        {
            "id": name,
            "url": url,
            "canonical_url": url,
            "title": "The bridge",
            "text": text,
            "published_at": published,
            "date_precision": precision,
        }
    )
