"""ROSE end to end over a local index: what it gains, what it says, what it never sees."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from support.blocks import BlockDetector, BlockMasker, ColourEmbedder, block_mask, scene

from engine.core.config import Config, RoseSection
from engine.core.errors import ConfigError
from engine.core.geometry import mask_iou
from engine.core.images import encode_jpeg
from engine.core.masks import decode_rle
from engine.core.protocols import EvalItem
from engine.core.schema import Article
from engine.core.store import BlobStore
from engine.web.search.local import LocalIndex
from inference import predict
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make

UNTIL = datetime(2026, 3, 9, tzinfo=UTC)
RED, BLUE = (220, 20, 20), (20, 20, 220)
BIG, SMALL = (5, 5, 60, 70), (80, 20, 110, 60)
PICTURE = scene([(RED, BIG), (BLUE, SMALL)])
SOURCE = "https://north.example/n/regatta"
ITEM = EvalItem(
    sample_id="s1",
    question="Which person in the image won the harbour regatta?",
    images=(PICTURE,),
    cutoff=UNTIL,
    blocked=(SOURCE,),
)


def story(name: str, text: str, *, day: int = 4, url: str = "") -> Article:
    where = url or f"https://south.example/{name}"
    return Article(
        id=name, url=where, canonical_url=where, title=f"Story {name}", text=text,
        published_at=datetime(2026, 3, day, 12, tzinfo=UTC),
    )  # fmt: skip


STORIES = [
    story("own", "Ada Brook won the harbour regatta on Sunday. The wind was strong and many came to see.", url=SOURCE),
    story("week", "A look back at the week. Otto Lind opened a bakery. Ada Brook, a sailor, won the harbour regatta."),
    story("late", "Otto Lind won the harbour regatta, it turns out. Otto Lind won the harbour regatta indeed.", day=9),
]


def references(folder: Path) -> Path:
    for name, colour in (("Ada Brook", BLUE), ("Otto Lind", RED)):
        own = folder / name.lower().replace(" ", "-")
        own.mkdir(parents=True)
        (own / "names.json").write_text(json.dumps({"name": name, "aliases": [], "published": "2001-01-01"}))
        for number, shade in enumerate((0, 8, -8)):
            pixels = np.clip(np.full((40, 40, 3), colour, np.int16) + shade, 0, 255).astype(np.uint8)
            pixels[number * 3 : number * 3 + 4, :10] = 90
            (own / f"{number}.jpg").write_bytes(encode_jpeg(pixels))
    return folder


@pytest.fixture
def deps(tmp_path: Path) -> InferenceDeps:
    blobs = BlobStore(tmp_path / "blobs")
    index = LocalIndex.build(tmp_path / "i.sqlite", STORIES, blobs=blobs, references=references(tmp_path / "refs"))
    return InferenceDeps(
        search=index,
        make_detector=lambda _: BlockDetector(),
        make_mask_model=lambda _: BlockMasker(),
        make_embedder=lambda _: ColourEmbedder(),
    )


def config(**rose: object) -> Config:
    return Config(rose=RoseSection.model_validate({"answerer": "extract", **rose}))


async def test_names_move_the_mask_to_the_right_block(deps: InferenceDeps) -> None:
    (baseline,) = await make("portable", config(), deps=deps).run([ITEM])
    (result,) = await make("rose:portable", config(), deps=deps).run([ITEM])
    truth = block_mask(SMALL)
    assert baseline.masks[0] is not None
    assert mask_iou(baseline.masks[0], truth) == 0.0
    assert result.answer == "Ada Brook"
    assert result.masks[0] is not None
    assert mask_iou(result.masks[0], truth) == 1.0
    assert [step.module for step in result.trace] == [
        "websense", "irag", "irag.references", "tpe", "segmenter", "vpe",
    ]  # fmt: skip
    assert result.trace[-1].output == "replaced by the best candidate"


async def test_source_and_later_pages_reach_no_trace(deps: InferenceDeps) -> None:
    (result,) = await make("rose:portable", config(), deps=deps).run([ITEM])
    told = " ".join(step.model_dump_json() for step in result.trace)
    assert "south.example/week" in told
    assert SOURCE not in told
    assert "south.example/late" not in told
    (later,) = await make("rose:portable", config(), deps=deps).run(
        [replace(ITEM, cutoff=datetime(2026, 3, 20, tzinfo=UTC))]
    )
    assert "south.example/late" in " ".join(step.model_dump_json() for step in later.trace)


@pytest.mark.parametrize(
    ("switches", "modules", "right"),
    [
        ({"websense": False, "tpe": False, "vpe": False}, ["irag", "irag.references", "tpe", "segmenter"], False),
        ({"websense": False, "vpe": False}, ["irag", "irag.references", "tpe", "segmenter"], False),
        ({"websense": False, "tpe": False}, ["irag", "irag.references", "tpe", "segmenter", "vpe"], True),
        ({"irag": False}, ["websense", "tpe", "segmenter", "vpe"], False),
    ],
)
async def test_switches_of_the_ablation(
    deps: InferenceDeps, switches: dict[str, bool], modules: list[str], right: bool
) -> None:
    (result,) = await make("rose:portable", config(**switches), deps=deps).run([ITEM])
    assert [step.module for step in result.trace] == modules
    assert result.masks[0] is not None
    assert (mask_iou(result.masks[0], block_mask(SMALL)) == 1.0) == right
    assert {timing.module for timing in result.timings} == {m for m in modules if "." not in m}


async def test_a_question_about_looks_is_not_searched(deps: InferenceDeps) -> None:
    plain = replace(ITEM, question="the blue block on the right")
    (result,) = await make("rose:portable", config(), deps=deps).run([plain])
    assert result.trace[0].output == "no search"
    assert result.answer is None
    assert "irag" not in {step.module for step in result.trace}


async def test_predictions_hold_no_times_and_come_sorted(deps: InferenceDeps) -> None:
    runner = make("rose:portable", config(), deps=deps)
    items = [replace(ITEM, sample_id=name) for name in ("s3", "s1", "s2")]
    first, timings = await predict.run(items, config().score, deps=predict.PredictDeps(runner=runner))
    second, _ = await predict.run(items, config().score, deps=predict.PredictDeps(runner=runner))
    assert [p.sample_id for p in first] == ["s1", "s2", "s3"]
    assert [p.line() for p in first] == [p.line() for p in second]
    assert first[0].segmenter == "rose:portable"
    assert first[0].masks[0] is not None
    assert mask_iou(decode_rle(first[0].masks[0]), block_mask(SMALL)) == 1.0
    assert {(t.sample_id, t.module) for t in timings} >= {("s1", "irag"), ("s2", "vpe"), ("s3", "segmenter")}


async def test_several_images_each_get_their_own_check(deps: InferenceDeps) -> None:
    other = scene([(BLUE, BIG), (RED, SMALL)])
    (result,) = await make("rose:portable", config(), deps=deps).run([replace(ITEM, images=(PICTURE, other))])
    assert [step.output.split(":")[0] for step in result.trace if step.module == "vpe"] == [
        "replaced by the best candidate",
        "kept",
    ]
    assert result.masks[1] is not None
    assert mask_iou(result.masks[1], block_mask(BIG)) == 1.0


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ConfigError, match="retrieves and no search is there"):
        make("rose:portable", config(), deps=parts(InferenceDeps()))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        make("rose:portable", Config(), deps=parts(InferenceDeps(search=_Nothing())))
    with pytest.raises(ConfigError, match="takes whole samples"):
        make("rose:rose:portable", config(irag=False), deps=parts(InferenceDeps()))
    with pytest.raises(ConfigError, match="write for example 'rose:portable'"):
        make("rose", config(), deps=InferenceDeps())


def parts(deps: InferenceDeps) -> InferenceDeps:
    return replace(
        deps,
        make_detector=lambda _: BlockDetector(),
        make_mask_model=lambda _: BlockMasker(),
        make_embedder=lambda _: ColourEmbedder(),
    )


class _Nothing:
    name = "nothing"

    async def text(self, query: str, **_: object) -> list[object]:
        return []

    async def images(self, query: str, **_: object) -> list[object]:
        return []
