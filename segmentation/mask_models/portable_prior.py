"""How likely each pixel is a person: MediaPipe's selfie segmentation run with OpenCV on a square crop.

A soft, coarse map (256 x 256 per crop). Which person a pixel belongs to, and the exact edge, are decided elsewhere.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from engine.core.errors import ConfigError
from engine.core.geometry import Box, Floats, Image


class PersonPrior:
    """The network, loaded once, used by one thread at a time."""

    FILE: ClassVar[Path] = Path(__file__).with_name("data") / "selfie_segmentation.tflite"
    SHA256: ClassVar[str] = "8d13b7fae74af625c641226813616a2117bd6bca19eb3b75574621fc08557f27"
    SIDE_PX: ClassVar[int] = 256

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or self.FILE
        self._net: Any = None
        self._lock = threading.Lock()

    def of(self, image: Image, box: Box) -> Floats:
        """Probability (H, W) float32 over the whole image, zero outside `box`. Raises `ConfigError` without file."""
        import cv2

        height, width = image.shape[:2]
        x1, y1 = (int(max(0, np.floor(value))) for value in (box.x1, box.y1))
        x2, y2 = int(min(width, np.ceil(box.x2))), int(min(height, np.ceil(box.y2)))
        whole: Floats = np.zeros((height, width), np.float32)
        if x2 - x1 < 2 or y2 - y1 < 2:
            return whole
        with self._lock:
            if self._net is None:
                if not self._path.is_file():
                    raise ConfigError(f"the person model {self._path} is missing: install the package again")
                self._net = cv2.dnn.readNetFromTFLite(str(self._path))
            side = (self.SIDE_PX, self.SIDE_PX)
            self._net.setInput(cv2.dnn.blobFromImage(image[y1:y2, x1:x2], 1 / 255.0, side, swapRB=False, crop=False))
            small = self._net.forward().reshape(side)
        whole[y1:y2, x1:x2] = cv2.resize(small, (x2 - x1, y2 - y1), interpolation=cv2.INTER_LINEAR).clip(0.0, 1.0)
        return whole
