"""Speed and memory of the annotate stage with the portable annotator, without a network or weights to fetch.

    python -m bench.annotate_portable [--rounds 2] [--sides 100,300,1000,3000,6000]

Speed: the sample week's pictures, whole stage, against the plain loop that only cuts the same boxes out with GrabCut at
full size. Memory: pictures of growing size, over and over in one process; the peak of a size must not rise from round
to round. A picture of 12,000 pixels a side is refused before it is decoded.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Image
from engine.core.images import encode_jpeg, open_image
from engine.core.schema import Annotation, Entity, Question, Rejected, Writer
from engine.core.store import BlobStore
from flows import sample
from segmentation import annotate
from segmentation.annotate import AnnotateDeps
from segmentation.references import FolderReferences
from segmentation.registry import make_detector, make_embedder, make_mask_model

WEEK = Path(sample.__file__).parent
CONFIG = AnnotateSection(detector="portable", mask_model="portable", references=WEEK / "references")


def deps(blobs: BlobStore) -> AnnotateDeps:
    """The portable annotator over a store, with the sample week's references."""
    nowhere = Path("nowhere")
    return AnnotateDeps(
        detector=make_detector(CONFIG, weights_dir=nowhere),
        mask_model=make_mask_model(CONFIG, weights_dir=nowhere),
        blobs=blobs,
        embedder=make_embedder(CONFIG, weights_dir=nowhere),
        references=FolderReferences(WEEK / "references"),
    )


def week(blobs: BlobStore) -> list[Question]:
    """A question for every named thing of the sample week's scenes."""
    found = []
    for scene in json.loads((WEEK / "truth" / "truth.json").read_text(encoding="utf-8")):
        image = blobs.put((WEEK / "site" / "images" / f"{scene['scene']}.jpg").read_bytes(), "jpg")
        named = tuple(
            Entity(
                name=item["name"],
                type=item["type"],
                phrase="person" if item["type"] == "person" else item["slug"].replace("-", " "),
                position=item["position"],
                order=index,
            )
            for index, item in enumerate(scene["entities"])
        )
        found += [_question(f"{scene['scene']}/{one.name}", image, one, named) for one in named]
    return found


def speed() -> dict[str, Any]:
    """CPU seconds for the sample week: the stage, and the plain loop over the same boxes."""
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobStore(Path(folder))
        questions, wired = week(blobs), deps(blobs)
        cpu, wall = time.process_time(), time.monotonic()
        results = annotate.run(questions, CONFIG, deps=wired)
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        kept = [item for item in results if isinstance(item, Annotation)]
        plain = _plain_loop(kept, blobs)
    images = len({question.images[0] for question in questions})
    return {
        "images": images,
        "entities": len(questions),
        "masks": len(kept),
        "stage, CPU seconds": round(cpu, 1),
        "stage, wall seconds": round(wall, 1),
        "stage, images per CPU second": round(images / cpu, 2),
        "plain GrabCut at full size over the same boxes, CPU seconds": round(plain, 1),
        "ratio plain to stage (the stage also detects and binds)": round(plain / cpu, 2),
    }


def memory(sides: list[int], rounds: int) -> list[dict[str, Any]]:
    """Peak resident MB for a picture of each size, in rounds within one process."""
    pixels = open_image((WEEK / "site" / "images" / "library-desk.jpg").read_bytes()).pixels
    named = (
        Entity(name="Grace Hopper", type="person", phrase="person", position="left"),
        Entity(name="Eileen Collins", type="person", phrase="person", position="right", order=1),
    )
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        blobs = BlobStore(Path(folder))
        wired = deps(blobs)
        images = {side: blobs.put(encode_jpeg(_square(pixels, side)), "jpg") for side in sides}
        for number in range(1, rounds + 1):
            for side, image in images.items():
                _forget_peak()
                asked = [_question(f"{side}/{one.name}", image, one, named) for one in named]
                results = annotate.run(asked, CONFIG, deps=wired)
                masks = sum(isinstance(item, Annotation) for item in results)
                found.append({"round": number, "side_px": side, "peak_mb": _peak_mb(), "masks": masks})
        out = io.BytesIO()
        PilImage.new("1", (12_000, 12_000)).save(out, "PNG")
        huge = _question("huge", blobs.put(out.getvalue(), "png"), named[0], named)
        _forget_peak()
        (refused,) = annotate.run([huge], CONFIG, deps=wired)
        code = refused.code.value if isinstance(refused, Rejected) else "kept"
        found.append({"round": 1, "side_px": 12_000, "peak_mb": _peak_mb(), "rejected": code})
    return found


def _plain_loop(kept: list[Annotation], blobs: BlobStore) -> float:
    import cv2

    began = time.process_time()
    for item in kept:
        part = item.images[0]
        pixels = open_image(blobs.get(part.image)).pixels
        box = part.candidates[part.binding.candidate]
        frame = (int(box.x1), int(box.y1), int(box.x2 - box.x1), int(box.y2 - box.y1))
        labels = np.zeros(pixels.shape[:2], np.uint8)
        cv2.grabCut(pixels, labels, frame, np.zeros((1, 65)), np.zeros((1, 65)), 5, cv2.GC_INIT_WITH_RECT)
    return time.process_time() - began


def _question(qid: str, image: str, one: Entity, named: tuple[Entity, ...]) -> Question:
    return Question(
        id=qid,
        article_id="a",
        article_url="http://news.example/a",
        images=(image,),
        question="Which one?",
        answer=one.name,
        entity_type=one.type,
        kind="novel",
        phrase=one.phrase,
        position=one.position,
        entities=named,
        writer=Writer(name="template", version="1"),
    )


def _square(pixels: Image, side: int) -> Image:
    import cv2

    resized: Image = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    return resized


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_mb() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sides", default="100,300,1000,3000,6000")
    told = parser.parse_args(argv)
    sides = [int(side) for side in told.sides.split(",")]
    print(json.dumps({"speed": speed(), "memory": memory(sides, told.rounds)}, indent=1))


if __name__ == "__main__":
    main()
