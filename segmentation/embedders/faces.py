"""Face vectors, only where `[annotate] faces` is switched on: biometric data, see docs/ethics.md.

OpenCV's FaceRecognizerSF aligns a face by its five points and runs a network that the user puts there; none comes with
this package and none is fetched. Vectors live as long as the process and are written nowhere: what is stored is a
score per candidate box. Faces are found by the bundled detector, whose they are is asked only of named persons that
have reference pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError, first_line
from engine.core.geometry import Box, Floats, Image
from engine.core.schema import ModelRef
from segmentation import weights
from segmentation.detectors.portable_faces import Face, FaceFinder

#: Cosine similarity from which OpenCV's documentation of the network (SFace) takes two faces for one person's.
SAME_PERSON = 0.363
HINT = "set [annotate] face_weights to the file of a FaceRecognizerSF network (SFace in ONNX), or faces = false"


class FaceVectors:
    """Vectors of faces. Raises `ConfigError` for a network that is not named, not there, not the pinned one or none."""

    name = "sface"

    def __init__(self, config: AnnotateSection, *, weights_dir: Path, finder: FaceFinder | None = None) -> None:
        path, digest = face_file(config, weights_dir=weights_dir)
        self.finder = finder or FaceFinder()
        self._path, self._digest = path, digest
        self._network = _open(path)

    def model(self) -> ModelRef:
        import cv2

        told = f"opencv {cv2.__version__}"
        return ModelRef(role="faces", name=f"{self.name}:{self._path.stem}", version=told, weights_sha256=self._digest)

    def largest(self, image: Image, *, within: Box | None = None) -> Face | None:
        """The largest face of an image, or the largest whose middle lies in the upper two thirds of a box."""
        found = [face for face in self.finder.find(image) if len(face.points) == 5]
        if within is not None:
            found = [face for face in found if _belongs(face.box, within)]
        return max(found, key=lambda face: (face.box.area, -face.box.x1), default=None)

    def embed(self, image: Image, faces: Sequence[Face]) -> Floats:
        """Unit vectors (N, D) float32 of faces of one image."""
        import cv2

        rows = []
        bgr = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2BGR)
        for face in faces:
            box = face.box
            told = [box.x1, box.y1, box.width, box.height, *(value for point in face.points for value in point)]
            aligned = self._network.alignCrop(bgr, np.array([[*told, face.score]], np.float32))
            vector = np.asarray(self._network.feature(aligned), np.float32).ravel()
            rows.append(vector / max(1e-9, float(np.linalg.norm(vector))))
        return np.stack(rows).astype(np.float32) if rows else np.zeros((0, 0), np.float32)


def face_file(config: AnnotateSection, *, weights_dir: Path) -> tuple[Path, str]:
    """The network's file and its sha256. Raises `ConfigError` if it is not named, not there or not the pinned one."""
    if not config.face_weights:
        raise ConfigError(f"[annotate] faces = true needs a network, and none comes with this package: {HINT}")
    path = Path(config.face_weights)
    path = path if path.is_absolute() else weights_dir / path
    if not path.is_file():
        raise ConfigError(f"[annotate] face_weights = {config.face_weights}: there is no file {path}: {HINT}")
    digest = weights.file_digest(path, weights_dir=weights_dir)
    wanted = config.face_sha256.lower()
    if wanted and digest != wanted:
        raise ConfigError(
            f"{path} has the sha256 {digest}, [annotate] face_sha256 asks for {wanted}: put the right file"
        )
    return path, digest


def _open(path: Path) -> Any:
    import cv2

    # OpenCV 5 says on stderr that it has no other device; that is no news
    level = cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)
    try:
        return cv2.FaceRecognizerSF.create(str(path), "")
    except cv2.error as error:
        told = f"{path} is no network that OpenCV's FaceRecognizerSF takes ({first_line(error)})"
        raise ConfigError(f"{told}: {HINT}") from error
    finally:
        cv2.utils.logging.setLogLevel(level)


def _belongs(face: Box, person: Box) -> bool:
    x, y = face.center
    return person.x1 <= x <= person.x2 and person.y1 <= y <= person.y1 + 0.67 * person.height
