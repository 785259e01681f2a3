from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PilImage
from support.annotating import BoxMasker, KnownDetector, ellipse, entity, question

from engine.core.config.sections import AnnotateSection
from engine.core.errors import TerminalError
from engine.core.geometry import Box, Image
from engine.core.images import encode_png
from engine.core.masks import decode_rle
from engine.core.protocols import DetectRequest
from engine.core.schema import Annotation, Code, Rejected
from engine.core.store import BlobStore
from segmentation import annotate
from segmentation.annotate import AnnotateDeps
from segmentation.device import OutOfMemory
from segmentation.embedders.portable import PortableEmbedder

CONFIG = AnnotateSection()
LEFT, RIGHT = Box(20, 20, 100, 140), Box(180, 30, 260, 150)
ADA, BOB = entity("Ada", position="left", order=0), entity("Bob", position="right", order=1)


def picture(seed: int = 0, *, height: int = 160, width: int = 280) -> Image:
    return np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)


def wired(blobs: BlobStore, **more: object) -> AnnotateDeps:
    told = {"detector": KnownDetector({"person": [(LEFT, 0.9), (RIGHT, 0.8)]}), "mask_model": BoxMasker(), **more}
    return AnnotateDeps(blobs=blobs, **told)  # type: ignore[arg-type]


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def test_masks_land_on_the_named_entity(blobs: BlobStore) -> None:
    image = blobs.put(encode_png(picture()), "png")
    shard = [question(ADA, BOB, images=[image]), question(BOB, ADA, images=[image])]
    deps = wired(blobs)
    first, second = annotate.run(shard, CONFIG, deps=deps)
    assert isinstance(first, Annotation)
    assert isinstance(second, Annotation)
    for item, box in ((first, LEFT), (second, RIGHT)):
        (only,) = item.images
        assert (only.image, only.width, only.height) == (image, 280, 160)
        assert np.array_equal(decode_rle(only.rle), ellipse(160, 280, box))
        assert only.binding.rule == "count+position"
        assert [model.role for model in item.models] == ["detector", "mask_model"]
        assert all(figure.passed for figure in only.gates)
        assert not item.portable
    assert deps.detector.calls == deps.mask_model.calls == 1  # type: ignore[attr-defined]


def test_the_portable_parts_are_marked(blobs: BlobStore) -> None:
    image = blobs.put(encode_png(picture()), "png")
    deps = wired(blobs, mask_model=BoxMasker(name="portable"))
    (item,) = annotate.run([question(ADA, BOB, images=[image])], CONFIG, deps=deps)
    assert isinstance(item, Annotation)
    assert item.portable


def test_order_and_shard_do_not_matter(blobs: BlobStore) -> None:
    images = [blobs.put(encode_png(picture(seed)), "png") for seed in range(3)]
    shard = [question(ADA, BOB, images=[image], qid=f"q{index}") for index, image in enumerate(images)]
    together = {item.line() for item in annotate.run(shard, CONFIG, deps=wired(blobs))}
    alone = {annotate.run([item], CONFIG, deps=wired(blobs))[0].line() for item in reversed(shard)}
    assert together == alone


def test_several_images_give_several_masks_in_order(blobs: BlobStore) -> None:
    images = [blobs.put(encode_png(picture(seed)), "png") for seed in (5, 4)]
    (item,) = annotate.run([question(ADA, BOB, images=images)], CONFIG, deps=wired(blobs))
    assert isinstance(item, Annotation)
    assert [part.image for part in item.images] == images


def test_one_bad_image_of_several_rejects_the_question(blobs: BlobStore) -> None:
    good, bad = blobs.put(encode_png(picture()), "png"), blobs.put(b"\xff\xd8\xff\xe0broken", "jpg")
    both, fine = annotate.run(
        [question(ADA, BOB, images=[good, bad], qid="both"), question(BOB, ADA, images=[good], qid="fine")],
        CONFIG,
        deps=wired(blobs),
    )
    assert isinstance(both, Rejected)
    assert both.code in (Code.IMAGE_NOT_AN_IMAGE, Code.IMAGE_BROKEN)
    assert bad[:12] in both.detail
    assert both.parent == "http://news.example/story"
    assert isinstance(fine, Annotation)


def test_a_question_without_images_is_rejected(blobs: BlobStore) -> None:
    (item,) = annotate.run([question(ADA, images=[])], CONFIG, deps=wired(blobs))
    assert isinstance(item, Rejected)
    assert item.code is Code.NO_IMAGE


def test_a_missing_blob_ends_the_run(blobs: BlobStore) -> None:
    with pytest.raises(TerminalError, match="gone"):
        annotate.run([question(ADA, images=["0" * 64])], CONFIG, deps=wired(blobs))


def test_turned_photographs_give_masks_of_the_upright_size(blobs: BlobStore) -> None:
    """EXIF orientation 6: stored 280x160 means shown 160x280; detector and mask see the latter."""
    out = io.BytesIO()
    exif = PilImage.Exif()
    exif[0x0112] = 6
    PilImage.fromarray(picture()).save(out, "JPEG", exif=exif)
    image = blobs.put(out.getvalue(), "jpg")
    box = Box(30, 60, 120, 220)
    deps = wired(blobs, detector=KnownDetector({"person": [(box, 0.9)]}))
    (item,) = annotate.run([question(ADA, images=[image])], CONFIG, deps=deps)
    assert isinstance(item, Annotation)
    assert deps.detector.seen == [(280, 160, 3)]  # type: ignore[attr-defined]
    assert decode_rle(item.images[0].rle).shape == (280, 160)
    assert (item.images[0].width, item.images[0].height) == (160, 280)


def test_gates_reject_with_their_code(blobs: BlobStore) -> None:
    image = blobs.put(encode_png(picture()), "png")
    deps = wired(blobs, mask_model=BoxMasker(stability=0.2))
    (item,) = annotate.run([question(ADA, BOB, images=[image])], CONFIG, deps=deps)
    assert isinstance(item, Rejected)
    assert item.code is Code.MASK_UNSTABLE
    assert item.detail == "gate stability: 0.200, asked 0.7"


def test_second_prompt_must_find_the_same_box(blobs: BlobStore) -> None:
    image = blobs.put(encode_png(picture()), "png")
    camera = entity("Merle X1", phrase="camera")
    config = CONFIG.model_copy(update={"second_prompt": True})
    agreeing = wired(blobs, detector=KnownDetector({"camera": [(LEFT, 0.9)], "object": [(RIGHT, 0.9), (LEFT, 0.5)]}))
    (item,) = annotate.run([question(camera, images=[image])], config, deps=agreeing)
    assert isinstance(item, Annotation)
    assert item.images[0].gates[-1].name == "prompt"
    other = wired(blobs, detector=KnownDetector({"camera": [(LEFT, 0.9)], "object": [(RIGHT, 0.9)]}))
    (item,) = annotate.run([question(camera, images=[image])], config, deps=other)
    assert isinstance(item, Rejected)
    assert item.code is Code.PROMPTS_DISAGREE


class Gallery:
    """Reference pictures by name."""

    def __init__(self, **pictures: Image) -> None:
        self.pictures = pictures

    def of(self, name: str, *, aliases: tuple[str, ...] = ()) -> tuple[Image, ...]:
        return (self.pictures[name],) if name in self.pictures else ()


def test_references_tell_names_without_place_words_apart(blobs: BlobStore) -> None:
    """Two figures of different colours, no place words: the portable vectors and the habit of order agree or not."""
    pixels = np.full((160, 280, 3), 120, np.uint8)
    for box, colour in ((LEFT, (200, 30, 30)), (RIGHT, (30, 60, 200))):
        pixels[ellipse(160, 280, box)] = colour
    image = blobs.put(encode_png(pixels), "png")
    red, blue = (np.ascontiguousarray(box.crop(pixels)) for box in (LEFT, RIGHT))
    ada, bob = entity("Ada", order=0), entity("Bob", order=1)
    deps = wired(blobs, references=Gallery(Ada=blue, Bob=red), embedder=PortableEmbedder())
    found = annotate.run([question(ada, bob, images=[image]), question(bob, ada, images=[image])], CONFIG, deps=deps)
    boxes = {}
    for item, name in zip(found, ("Ada", "Bob"), strict=True):
        assert isinstance(item, Annotation), item
        assert "reference" in item.images[0].binding.rule
        boxes[name] = item.images[0].binding.candidate
        assert item.models[-1].role == "embedder"
    assert boxes == {"Ada": 1, "Bob": 0}  # against the order of the names: the references decide
    nothing = wired(blobs)
    for item in annotate.run([question(ada, bob, images=[image])], CONFIG, deps=nothing):
        assert isinstance(item, Rejected)
        assert item.code is Code.UNBOUND


class Greedy(KnownDetector):
    """Too little memory for two images at a time, or for a tall one."""

    def detect(self, requests):  # type: ignore[no-untyped-def]
        if len(requests) > 1 or any(request.image.shape[0] > 500 for request in requests):
            raise OutOfMemory("does not fit")
        return super().detect(requests)


def test_out_of_memory_goes_on_one_by_one_and_rejects_what_does_not_fit(blobs: BlobStore) -> None:
    sizes = (160, 600, 170)
    images = [blobs.put(encode_png(picture(1, height=height)), "png") for height in sizes]
    shard = [question(ADA, BOB, images=[image], qid=f"q{index}") for index, image in enumerate(images)]
    deps = wired(blobs, detector=Greedy({"person": [(LEFT, 0.9), (RIGHT, 0.8)]}))
    found = annotate.run(shard, CONFIG, deps=deps)
    assert [isinstance(item, Annotation) for item in found] == [True, False, True]
    assert isinstance(found[1], Rejected)
    assert found[1].code is Code.OUT_OF_MEMORY
    assert "280x600" in found[1].detail


def test_an_answer_under_another_name_is_the_captions_entity(blobs: BlobStore) -> None:
    """Caption: "Hopper (left) and Bob (right)"; the answer is her full name, the caption's form is an alias."""
    image = blobs.put(encode_png(picture()), "png")
    hopper = entity("Hopper", position="left")
    asked = question(hopper, BOB, images=[image], aliases=("Hopper",)).model_copy(update={"answer": "Grace Hopper"})
    (item,) = annotate.run([asked], CONFIG, deps=wired(blobs))
    assert isinstance(item, Annotation)
    assert np.array_equal(decode_rle(item.images[0].rle), ellipse(160, 280, LEFT))


class Together(BoxMasker):
    """Encodes several pictures at once, if they are not too tall."""

    def segment_many(self, items):  # type: ignore[no-untyped-def]
        if any(pixels.shape[0] > 500 for pixels, _ in items):
            raise OutOfMemory("does not fit")
        return [BoxMasker.segment(self, pixels, boxes) for pixels, boxes in items]

    def segment(self, image, boxes):  # type: ignore[no-untyped-def]
        if image.shape[0] > 500:
            raise OutOfMemory("does not fit")
        return super().segment(image, boxes)


@pytest.mark.parametrize("heights", [(160, 170, 180), (160, 600, 170)])
def test_mask_models_that_take_several_pictures_get_them(blobs: BlobStore, heights: tuple[int, ...]) -> None:
    images = [blobs.put(encode_png(picture(2, height=height)), "png") for height in heights]
    shard = [question(ADA, BOB, images=[image], qid=f"q{index}") for index, image in enumerate(images)]
    found = annotate.run(shard, CONFIG, deps=wired(blobs, mask_model=Together()))
    alone = annotate.run(shard, CONFIG, deps=wired(blobs, mask_model=BoxMasker(name="ellipse")))
    for item, one, height in zip(found, alone, heights, strict=True):
        if height > 500:
            assert isinstance(item, Rejected)
            assert item.code is Code.OUT_OF_MEMORY
        else:
            assert item == one


def test_too_large_a_picture_is_refused_before_it_is_decoded(blobs: BlobStore) -> None:
    huge = io.BytesIO()
    PilImage.new("1", (12_000, 12_000)).save(huge, "PNG")
    image = blobs.put(huge.getvalue(), "png")
    (item,) = annotate.run([question(ADA, images=[image])], CONFIG, deps=wired(blobs))
    assert isinstance(item, Rejected)
    assert item.code is Code.IMAGE_TOO_LARGE


def test_exemplars_reach_the_detector(blobs: BlobStore) -> None:
    image = blobs.put(encode_png(picture()), "png")
    asked: list[DetectRequest] = []

    class Noting(KnownDetector):
        def detect(self, requests):  # type: ignore[no-untyped-def]
            asked.extend(requests)
            return super().detect(requests)

    shown = picture(9, height=30, width=30)
    deps = wired(blobs, detector=Noting({}), references=Gallery(Ada=shown))
    (item,) = annotate.run([question(ADA, BOB, images=[image])], CONFIG, deps=deps)
    assert isinstance(item, Rejected)
    assert item.code is Code.NO_CANDIDATE
    assert asked[0].phrases == ("person",)
    assert np.array_equal(asked[0].exemplars["person"][0], shown)
