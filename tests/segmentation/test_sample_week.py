"""The portable annotator on scenes of the bundled week: boxes found, names bound, masks held against the truth.

Six of the scenes, chosen for what they ask: two people with and without place words, three and four things, a mirrored
thing, a turned photograph. The whole week is measured where the demo is tested.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.annotating import entity, question

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Mask, mask_iou
from engine.core.images import open_image
from engine.core.masks import decode_rle
from engine.core.schema import Annotation, Question, Rejected
from engine.core.store import BlobStore
from flows import sample
from segmentation import annotate
from segmentation.annotate import AnnotateDeps
from segmentation.references import FolderReferences
from segmentation.registry import make_detector, make_embedder, make_mask_model

WEEK = Path(sample.__file__).parent
SCENES = ("library-desk", "medal-night", "fair-stand", "design-prize", "park-ride", "navy-portrait")
NOUNS = {
    "lumio-nova-7": "phone",
    "tidewatch-4": "watch",
    "playdeck-duo": "console",
    "merle-x1": "camera",
    "sonara-drum": "loudspeaker",
    "rondo-m3": "vacuum cleaner",
    "vireo-12e": "bus",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def week(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Question], dict[str, Mask], BlobStore]:
    blobs = BlobStore(tmp_path_factory.mktemp("week"))
    questions, truth = [], {}
    for scene in json.loads((WEEK / "truth" / "truth.json").read_text(encoding="utf-8")):
        if scene["scene"] not in SCENES:
            continue
        image = blobs.put((WEEK / "site" / "images" / f"{scene['scene']}.jpg").read_bytes(), "jpg")
        named = [
            entity(item["name"], phrase=NOUNS.get(item["slug"], "person"), position=item["position"], order=index)
            for index, item in enumerate(scene["entities"])
        ]
        for item, one in zip(scene["entities"], named, strict=True):
            qid = f"{scene['scene']}/{item['slug']}"
            questions.append(question(one, *(other for other in named if other != one), images=[image], qid=qid))
            picture = open_image((WEEK / "truth" / scene["scene"] / f"{item['slug']}.png").read_bytes()).pixels
            truth[qid] = np.asarray(picture[..., 0] > 127)
    return questions, truth, blobs


def test_portable_annotator_on_the_sample_week(week: tuple[list[Question], dict[str, Mask], BlobStore]) -> None:
    questions, truth, blobs = week
    config = AnnotateSection(detector="portable", mask_model="portable", references=WEEK / "references")
    nowhere = Path("nowhere")
    deps = AnnotateDeps(
        detector=make_detector(config, weights_dir=nowhere),
        mask_model=make_mask_model(config, weights_dir=nowhere),
        blobs=blobs,
        embedder=make_embedder(config, weights_dir=nowhere),
        references=FolderReferences(WEEK / "references"),
    )
    found = annotate.run(questions, config, deps=deps)
    assert [getattr(item, "id", "") or item.item for item in found] == [item.id for item in questions]  # type: ignore[union-attr]
    kept = {item.id: decode_rle(item.images[0].rle) for item in found if isinstance(item, Annotation)}
    overlaps = {qid: mask_iou(mask, truth[qid]) for qid, mask in kept.items()}
    lost = {item.item: item.code.value for item in found if isinstance(item, Rejected)}
    told = f"kept {overlaps}, lost {lost}"
    assert len(kept) >= 0.8 * len(questions), told
    assert min(overlaps.values()) > 0.5, told  # nobody is bound to somebody else's place
    assert float(np.mean(list(overlaps.values()))) >= 0.9, told
    assert all(item.portable for item in found if isinstance(item, Annotation))
