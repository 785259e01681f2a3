"""Detecting and segmenting, ours against the plain loop "one image, one phrase, one box at a time".

    python -m bench.annotate [--images 4] [--entities 3] [--size tiny|vit_b|vit_h] [--device auto] [--dtype float32]

The loop is what a script over the two packages does: groundingdino-py's `predict` once per phrase, `SamPredictor` once
per box. Ours asks for all phrases of an image in one caption and encodes the image once. Same weights (random, seeded),
same images, same boxes, in one process, in turns. Sizes: `tiny` is the test models at the real input sides, `vit_b` and
`vit_h` are the published sizes with Swin-T. Also printed: how far the two disagree, and each one's peak of memory. On a
card, e.g. `--size vit_h --dtype bfloat16 --images 16 --rounds 3`; the first round warms it up.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as PilImage

from engine.core.config.sections import AnnotateSection
from engine.core.geometry import Box, Image
from engine.core.protocols import DetectRequest
from segmentation.detectors.groundingdino import GroundingDino
from segmentation.detectors.groundingdino_image import shown_size, to_tensor
from segmentation.detectors.groundingdino_model import forward_context
from segmentation.mask_models.sam import Sam

VECTORS = Path(__file__).parents[1] / "tests/data/vectors"
PHRASES = ("a red square", "green circle", "dog", "square", "circle")
SIDES = ((600, 900), (900, 600), (768, 1024), (600, 900))


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 if the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--entities", type=int, default=3, choices=range(1, len(PHRASES) + 1))
    parser.add_argument("--size", choices=("tiny", "vit_b", "vit_h"), default="tiny")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", choices=("float32", "float16", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=2)
    told = parser.parse_args(arguments)
    images = [picture(*SIDES[i % len(SIDES)], seed=i) for i in range(told.images)]
    phrases = PHRASES[: told.entities]
    with tempfile.TemporaryDirectory() as temporary:
        dino, sam = build(Path(temporary), told)
    loop_s, ours_s, wrong = [], [], 0.0
    loop_gib = ours_gib = 0.0
    for _ in range(told.rounds):
        forget_peak(dino._device)
        began = time.perf_counter()
        theirs = [plain_loop(dino, sam, image, phrases) for image in images]
        loop_s.append(time.perf_counter() - began)
        loop_gib = max(loop_gib, peak_gib(dino._device))
        forget_peak(dino._device)
        began = time.perf_counter()
        found = ours(dino, sam, images, phrases)
        ours_s.append(time.perf_counter() - began)
        ours_gib = max(ours_gib, peak_gib(dino._device))
        wrong = max(np.mean(a != b) for x, y in zip(theirs, found, strict=True) for a, b in zip(x, y, strict=True))
    slow, fast = min(loop_s) / len(images), min(ours_s) / len(images)
    out = sys.stdout.write
    out(f"{told.images} images, {told.entities} entities each, {told.size}, {dino._device}, {told.dtype}\n")
    where = "on the card" if dino._device.type == "cuda" else "of the process"
    out(f"plain loop   {slow:8.3f} s per image   {1 / slow:8.2f} images/s   peak {loop_gib:.2f} GiB {where}\n")
    out(f"ours         {fast:8.3f} s per image   {1 / fast:8.2f} images/s   peak {ours_gib:.2f} GiB {where}\n")
    out(f"{slow / fast:.2f} times as fast; pixels that differ: at most {wrong:.2%} of a mask\n")
    # Half precision moves pixels whose logit is about 0, and with random weights many are.
    return 1 if told.dtype == "float32" and wrong > 0.001 else 0


def boxes_of(image: Image, count: int) -> list[Box]:
    """Boxes for the entities: the random detector's own would differ from run to run of this file's settings."""
    height, width = image.shape[:2]
    step = width / (count + 1)
    return [Box(i * step, 0.1 * height, (i + 1.5) * step, 0.9 * height) for i in range(count)]


def ours(dino: GroundingDino, sam: Sam, images: list[Image], phrases: tuple[str, ...]) -> list[list[Any]]:
    """All phrases of all images together, then all boxes of each image on one encoding."""
    dino.detect([DetectRequest(image, phrases) for image in images])
    found = sam.segment_many([(image, boxes_of(image, len(phrases))) for image in images])
    return [[one.mask for one in masks] for masks in found]


def plain_loop(dino: GroundingDino, sam: Sam, image: Image, phrases: tuple[str, ...]) -> list[Any]:
    """The packages' own functions, one phrase and one box at a time."""
    from groundingdino.util.inference import predict
    from segment_anything import SamPredictor

    predictor = SamPredictor(sam._network)
    masks = []
    for phrase, box in zip(phrases, boxes_of(image, len(phrases)), strict=True):
        with forward_context(dino._width):
            tensor = to_tensor(image, shown_size(*image.shape[:2]))
            predict(dino._network, tensor, phrase, 0.35, 0.25, device=str(dino._device))
        predictor.set_image(image)
        found, quality, _ = predictor.predict(box=np.array([box.x1, box.y1, box.x2, box.y2]), multimask_output=True)
        masks.append(found[int(quality.argmax())])
    return masks


def build(folder: Path, told: argparse.Namespace) -> tuple[GroundingDino, Sam]:
    """Both models with seeded random weights."""
    import torch
    from safetensors.torch import load_file, save_file

    from segmentation.mask_models.sam_model import SIZES, build_sam

    torch.manual_seed(0)
    dino = VECTORS / "groundingdino"
    sizes, config, weights = folder / "sam.json", str(dino / "config.json"), dino / "model.safetensors"
    if told.size == "tiny":
        prefix = "model.visual_model."
        stored = load_file(VECTORS / "lisa/checkpoint/model.safetensors")
        state = {k.removeprefix(prefix): v.float() for k, v in stored.items() if k.startswith(prefix)}
        meta = json.loads((VECTORS / "sam_predictor/meta.json").read_text(encoding="utf-8"))
        sizes.write_text(json.dumps(meta["tiny_sam"]), encoding="utf-8")
    else:
        state = build_sam(SIZES[told.size]).state_dict()
        config, weights = "swin_t", folder / "swin_t.safetensors"
        save_file(random_dino(dino / "bert-tiny"), weights)
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "sam.safetensors")
    section = AnnotateSection(
        device=told.device,
        dtype=told.dtype,
        detector_config=config,
        detector_weights=str(weights),
        text_encoder=str(dino / "bert-tiny"),
        mask_config=str(sizes) if told.size == "tiny" else told.size,
        mask_weights=str(folder / "sam.safetensors"),
    )
    return GroundingDino(section, weights_dir=folder), Sam(section, weights_dir=folder)


def random_dino(text_encoder: Path) -> dict[str, Any]:
    """Random weights of the published Swin-T size under the published names."""
    from segmentation.detectors.groundingdino_model import fresh_model, read_config

    model = fresh_model(read_config("swin_t"), text_encoder=text_encoder)
    return {k: v.clone().contiguous() for k, v in model.state_dict().items()}


def picture(height: int, width: int, *, seed: int) -> Image:
    """Noise on ramps; what is in it does not change the time."""
    rng = np.random.default_rng(seed)
    ramp = np.linspace(0, 200, width)[None, :, None] + rng.normal(0, 25, (height, width, 3))
    return np.asarray(PilImage.fromarray(ramp.clip(0, 255).astype(np.uint8)), np.uint8)


def forget_peak(device: Any) -> None:
    """Let a new peak of memory begin, on the card or of this process."""
    import torch

    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_gib(device: Any) -> float:
    """The peak since then: allocated on the card, or resident in the process."""
    import torch

    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device)) / 2**30
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 2**20


if __name__ == "__main__":
    raise SystemExit(main())
