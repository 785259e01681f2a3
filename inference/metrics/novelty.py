"""Which entities a model knows without the news: the novel/emerging split, per model, with its evidence.

The model behind an endpoint is asked with the picture (whom or what it recognises) and without it (the question
alone), in several phrasings. A reply that names the entity by its answer or an alias, as whole words after
normalising, shows that it knows it. One such reply makes the entity "emerging" for that model, none makes it
"novel"; replies that are refused, cut or failed show nothing. The paper's labels are LLaVA-v1.5-7B's; its probe is
not published, so that the phrasings and the rule are our choice. Any OpenAI-compatible server of it serves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from engine.core.images import encode_jpeg
from engine.core.protocols import ChatModel, ChatRequest
from engine.core.schema import BlindAnswer, NoveltyLabel
from engine.core.store import read_jsonl, write_atomic
from engine.core.together import together
from inference.benchmarks.base import Benchmark, BenchmarkSample
from inference.metrics.answers import normalise

SYSTEM = "Answer from what you know. Give names in full. If you do not know, say that you do not know."
WITH_IMAGE = (
    "Name every person and every product that you recognise in this picture.",
    "Who or what is shown in this picture? Give proper names, not descriptions.",
    "{question} Answer with the name.",
)
WITHOUT_IMAGE = (
    "{question} There is no picture. Answer with the name that you think fits.",
    "Which name answers this question about a news picture: {question}",
)
ANSWER_CHARS = 400
MAX_TOKENS = 200


@dataclass(frozen=True, slots=True)
class _Probe:
    with_image: bool
    text: str


def names_entity(reply: str, names: Iterable[str]) -> bool:
    """Whether one of the names stands in the reply as whole words."""
    said = f" {normalise(reply)} "
    return any(name and f" {name} " in said for name in map(normalise, names))


async def probe_sample(sample: BenchmarkSample, model: ChatModel) -> NoveltyLabel:
    """Ask a model about one sample. Raises what the model's client raises when its patience is spent."""
    images = tuple(encode_jpeg(image) for image in sample.images())
    names = (sample.answer, *sample.aliases)
    evidence = []
    for probe in _probes(sample.question):
        reply = await model.complete(
            ChatRequest(
                system=SYSTEM,
                user=probe.text,
                images=images if probe.with_image else (),
                max_tokens=MAX_TOKENS,
                purpose="novelty",
            )
        )
        if reply.status == "ok":
            matches = names_entity(reply.text, names)
            evidence.append(
                BlindAnswer(
                    model=model.name,
                    with_image=probe.with_image,
                    answer=reply.text[:ANSWER_CHARS],
                    matches=matches,
                )
            )
    known = any(one.matches for one in evidence)
    label = "emerging" if known else "novel" if evidence else "unknown"
    return NoveltyLabel.model_validate(
        {
            "sample_id": sample.id,
            "model": model.name,
            "label": label,
            "evidence": [one.model_dump() for one in evidence],
        }
    )


async def probe(
    benchmark: Benchmark,
    model: ChatModel,
    *,
    known: Iterable[NoveltyLabel] = (),
    max_in_flight: int = 8,
) -> AsyncIterator[NoveltyLabel]:
    """Labels of all samples in the benchmark's order; those in `known` for this model are not asked for again."""
    have = {one.sample_id: one for one in known if one.model == model.name}
    batch: list[BenchmarkSample] = []
    for sample in benchmark:
        batch.append(sample)
        if len(batch) == max_in_flight:
            for label in await _probe_batch(batch, model, have):
                yield label
            batch = []
    for label in await _probe_batch(batch, model, have):
        yield label


def write_labels(path: Path, labels: Iterable[NoveltyLabel]) -> None:
    """Labels as JSON lines, in order of model and sample."""
    ordered = sorted(labels, key=lambda one: (one.model, one.sample_id))
    write_atomic(path, "".join(one.line() + "\n" for one in ordered).encode())


def read_labels(path: Path) -> list[NoveltyLabel]:
    """Labels from JSON lines. Raises `TerminalError` with file and line for one that does not fit."""
    return list(read_jsonl(path, NoveltyLabel))


def with_labels(benchmark: Benchmark, labels: Iterable[NoveltyLabel]) -> Benchmark:
    """The benchmark with a tag `novelty:<model>` from each label; labels of other samples are left aside."""
    tags: dict[str, dict[str, str]] = {}
    models = set()
    for one in labels:
        tags.setdefault(one.sample_id, {})[f"novelty:{one.model}"] = one.label
        models.add(one.model)

    def tagged(read: Callable[[bool], Iterator[BenchmarkSample]]) -> Callable[[bool], Iterator[BenchmarkSample]]:
        return lambda images: (
            replace(sample, tags={**sample.tags, **tags.get(sample.id, {})}) for sample in read(images)
        )

    base = next(iter(models)) if len(models) == 1 else benchmark.base_model
    return replace(benchmark, read=tagged(benchmark.read), base_model=base)


def _probes(question: str) -> list[_Probe]:
    return [
        *(_Probe(True, text.format(question=question)) for text in WITH_IMAGE),
        *(_Probe(False, text.format(question=question)) for text in WITHOUT_IMAGE),
    ]


async def _probe_batch(
    batch: list[BenchmarkSample], model: ChatModel, have: dict[str, NoveltyLabel]
) -> list[NoveltyLabel]:
    async def one(sample: BenchmarkSample) -> NoveltyLabel:
        return have[sample.id] if sample.id in have else await probe_sample(sample, model)

    return await together(one(sample) for sample in batch)
