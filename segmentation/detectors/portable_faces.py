"""Where faces are: CenterFace run with OpenCV. Finds boxes and five points: no identity, no embedding.

The heads of the network are read as the paper says (Xu et al., arXiv:1911.03599, section 3): a heat map of centres
at a quarter of the input, the logarithm of height and width, the offset of the centre inside its cell, and the five
landmarks in shares of the box. Deciding who a face belongs to is the business of `segmentation.binding`.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from engine.core.errors import ConfigError
from engine.core.geometry import Box, Image

_STRIDE = 4
_HEADS = ["537", "538", "539", "540"]  # heat map, scale, offset, landmarks: output names of the published file


@dataclass(frozen=True, slots=True)
class Face:
    """A face: its box in pixels of the image it was found in, the detector's score (0 to 1), and the points of eyes,
    nose and mouth's corners, each pair from the image's left, as (x, y)."""

    box: Box
    score: float
    points: tuple[tuple[float, float], ...] = ()


class FaceFinder:
    """CenterFace. The last few images' faces are kept, so that detector and mask model look once."""

    FILE: ClassVar[Path] = Path(__file__).with_name("data") / "centerface.onnx"
    SHA256: ClassVar[str] = "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc"
    KEPT: ClassVar[int] = 8

    def __init__(self, path: Path | None = None, *, threshold: float = 0.5, max_side_px: int = 960) -> None:
        """`threshold` 0.5 is the published demo's; images are shrunk to `max_side_px` before they are looked at."""
        self.threshold = threshold
        self.max_side_px = max_side_px
        self._path = path or self.FILE
        self._net: Any = None
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, tuple[Face, ...]] = OrderedDict()

    def find(self, image: Image) -> tuple[Face, ...]:
        """Faces, best first. Raises `ConfigError` if the model file is gone."""
        digest = image_digest(image)
        with self._lock:
            if digest in self._seen:
                self._seen.move_to_end(digest)
                return self._seen[digest]
            found = self._run(image)
            self._seen[digest] = found
            while len(self._seen) > self.KEPT:
                self._seen.popitem(last=False)
            return found

    def _run(self, image: Image) -> tuple[Face, ...]:
        import cv2

        if self._net is None:
            if not self._path.is_file():
                raise ConfigError(f"the face model {self._path} is missing: install the package again")
            self._net = cv2.dnn.readNetFromONNX(str(self._path))
        height, width = image.shape[:2]
        scale = min(1.0, self.max_side_px / max(height, width))
        # the network halves its input five times: sides are multiples of 32
        net_w, net_h = (max(32, -(-round(side * scale) // 32) * 32) for side in (width, height))
        small = cv2.resize(image, (net_w, net_h), interpolation=cv2.INTER_AREA)
        self._net.setInput(cv2.dnn.blobFromImage(small, 1.0, (net_w, net_h), (0, 0, 0), swapRB=False, crop=False))
        heat, size, offset, marks = self._net.forward(_HEADS)
        rows, cols = np.nonzero(heat[0, 0] > self.threshold)
        if rows.size == 0:
            return ()
        face_h, face_w = (np.exp(size[0, axis, rows, cols]) * _STRIDE for axis in (0, 1))
        center_y = (rows + offset[0, 0, rows, cols] + 0.5) * _STRIDE
        center_x = (cols + offset[0, 1, rows, cols] + 0.5) * _STRIDE
        scores = heat[0, 0, rows, cols].astype(float)
        boxes = np.stack([center_x - face_w / 2, center_y - face_h / 2, face_w, face_h], axis=1).astype(float)
        kept = np.array(cv2.dnn.NMSBoxes(boxes.tolist(), scores.tolist(), self.threshold, 0.3)).ravel()
        to_x, to_y = width / net_w, height / net_h
        faces = []
        for index in kept:
            x, y, w, h = (float(value) for value in boxes[index])
            box = Box(x * to_x, y * to_y, (x + w) * to_x, (y + h) * to_y).clip(width, height)
            if box.area > 0:
                at = marks[0, :, rows[index], cols[index]]
                points = tuple(
                    (float((x + at[2 * k + 1] * w) * to_x), float((y + at[2 * k] * h) * to_y)) for k in range(5)
                )
                faces.append(Face(box, min(1.0, float(scores[index])), points))
        return tuple(sorted(faces, key=lambda face: (-face.score, face.box.x1, face.box.y1)))


def image_digest(image: Image) -> bytes:
    """16 bytes that name an image in memory, so that what was found in it can be found again."""
    pixels: Any = np.ascontiguousarray(image)
    return hashlib.blake2b(pixels, digest_size=16, person=str(image.shape)[:16].encode()).digest()
