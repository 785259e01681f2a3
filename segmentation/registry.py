"""Names of the config to detectors, mask models and embedders, and what of them goes into a stage's key.

The real models are imported only when they are asked for: `nest --help` must not wait for torch.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.protocols import Detector, Embedder, MaskModel
from segmentation.references import folder_digest

if TYPE_CHECKING:
    from segmentation.embedders.faces import FaceVectors

DETECTORS = ("groundingdino", "hf-groundingdino", "portable")
MASK_MODELS = ("sam", "hf-sam", "hf-sam2", "hf-sam3", "portable")
EMBEDDERS = ("auto", "clip", "portable", "none")
#: The real models, imported only when a config names them.
_PLACES = {
    "groundingdino": "segmentation.detectors.groundingdino:GroundingDino",
    "hf-groundingdino": "segmentation.detectors.hf:HfGroundingDino",
    "sam": "segmentation.mask_models.sam:Sam",
    "hf-sam": "segmentation.mask_models.hf:HfSam",
    "hf-sam2": "segmentation.mask_models.hf:HfSam",
    "hf-sam3": "segmentation.mask_models.hf:HfSam",
    "clip": "segmentation.embedders.clip:ClipEmbedder",
}
#: Parts of the section that only the real models read: they do not change what the portable ones give.
_REAL_ONLY = frozenset(
    {
        "dtype",
        "detector_config",
        "detector_weights",
        "text_encoder",
        "mask_config",
        "mask_weights",
        "embedder_weights",
        "text_threshold",
    }
)


def make_detector(config: AnnotateSection, *, weights_dir: Path) -> Detector:
    """The detector that `[annotate] detector` names. Raises `ConfigError` for an unknown name or absent weights."""
    if config.detector == "portable":
        from segmentation.detectors.portable import PortableDetector

        return PortableDetector(_people(), box_threshold=config.box_threshold)
    _known("detector", config.detector, DETECTORS)
    made: Detector = _load(_PLACES[config.detector])(config, weights_dir=weights_dir)
    return made


def make_mask_model(config: AnnotateSection, *, weights_dir: Path) -> MaskModel:
    """The mask model that `[annotate] mask_model` names. Raises like `make_detector`."""
    if config.mask_model == "portable":
        from segmentation.mask_models.portable import PortableMasker

        return PortableMasker(_people())
    _known("mask_model", config.mask_model, MASK_MODELS)
    made: MaskModel = _load(_PLACES[config.mask_model])(config, weights_dir=weights_dir)
    return made


def make_embedder(config: AnnotateSection, *, weights_dir: Path) -> Embedder | None:
    """The embedder for reference pictures, None where none is wanted.

    `auto` means: none without `references`, the portable one beside the portable detector, else CLIP.
    """
    _known("embedder", config.embedder, EMBEDDERS)
    name = embedder_name(config)
    if name == "none":
        return None
    if name == "portable":
        from segmentation.embedders.portable import PortableEmbedder

        return PortableEmbedder()
    made: Embedder = _load(_PLACES[name])(config, weights_dir=weights_dir)
    return made


def make_faces(config: AnnotateSection, *, weights_dir: Path) -> FaceVectors | None:
    """Face vectors where `[annotate] faces` asks for them, else None. Raises `ConfigError` without their network."""
    if not config.faces:
        return None
    from segmentation.embedders.faces import FaceVectors

    return FaceVectors(config, weights_dir=weights_dir, finder=_people().faces)


def embedder_name(config: AnnotateSection) -> str:
    """What `auto` stands for in this config; other names as they are."""
    if config.embedder != "auto":
        return config.embedder
    if config.references is None:
        return "none"
    return "portable" if config.detector == "portable" else "clip"


def annotator_key(
    config: AnnotateSection,
    *,
    weights_dir: Path | None = None,
    references: Path | None = None,
    marks_model: str = "",
) -> dict[str, Any]:
    """What decides the annotations: settings, model versions, digests of weights and of the reference folder.

    `references` is the folder as an absolute path where the config's is relative to its file, `marks_model` the id
    of the chat model that is shown marks. Raises `ConfigError` for unknown names and absent weights, so that a run
    stops before it begins.
    """
    for what, name, known in (
        ("detector", config.detector, DETECTORS),
        ("mask_model", config.mask_model, MASK_MODELS),
        ("embedder", config.embedder, EMBEDDERS),
    ):
        _known(what, name, known)
    folder = references or config.references
    keyed = {name: value for name, value in config.keyed().items() if name != "references"}
    embedder = embedder_name(config)
    portable = config.detector == config.mask_model == "portable" and embedder in ("portable", "none")
    if portable:
        keyed = {name: value for name, value in keyed.items() if name not in _REAL_ONLY}
    asked: dict[str, Any] = {}
    if config.faces:
        from segmentation.embedders.faces import face_file

        asked["faces"] = face_file(config, weights_dir=weights_dir or config.weights_dir or Path("weights"))[1]
    if config.marks:
        from engine.llm.prompts import load_prompt
        from segmentation.binding.marks import PROMPT

        asked["marks"] = [load_prompt("segmentation.binding", PROMPT).digest, marks_model]
    return {
        "settings": keyed | {"embedder": embedder} | asked,
        "models": _versions(config, weights_dir or config.weights_dir or Path("weights"), embedder),
        "references": folder_digest(folder) if folder is not None else "",
    }


def _versions(config: AnnotateSection, weights_dir: Path, embedder: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "portable" in (config.detector, config.mask_model, embedder):
        import cv2

        from segmentation.detectors.portable import PortableDetector
        from segmentation.detectors.portable_faces import FaceFinder
        from segmentation.embedders.portable import PortableEmbedder
        from segmentation.mask_models.portable import PortableMasker
        from segmentation.mask_models.portable_prior import PersonPrior

        found["portable"] = {
            "detector": PortableDetector.VERSION,
            "mask_model": PortableMasker.VERSION,
            "embedder": PortableEmbedder.VERSION,
            "faces_sha256": FaceFinder.SHA256,
            "persons_sha256": PersonPrior.SHA256,
            "opencv": cv2.__version__,
        }
    if config.detector != "portable" or config.mask_model != "portable" or embedder == "clip":
        found["weights"], lacking = _weights(config, weights_dir, embedder)
        if lacking:
            raise ConfigError("; ".join(lacking))
    return found


def lacking_weights(config: AnnotateSection, *, weights_dir: Path) -> list[str]:
    """What of the config's models is not there, each with what to put where; nothing is fetched."""
    return _weights(config, weights_dir, embedder_name(config))[1]


def _weights(config: AnnotateSection, weights_dir: Path, embedder: str) -> tuple[dict[str, str], list[str]]:
    """What names the real models' weights: a pinned place on the Hub as it is, else the sha256 of what lies there.
    Then, in words, all that is not there at once."""
    from segmentation import weights
    from segmentation.pretrained import model_folder

    def file(spec: str, setting: str, variant: str) -> str:
        if weights.hub_spec(spec) is not None and not Path(spec).exists():
            return spec
        published = weights.PUBLISHED.get(variant)
        path = weights.resolve_file(spec, weights_dir=weights_dir, setting=setting, published=published)
        return weights.file_digest(path, weights_dir=weights_dir)

    def folder(spec: str, setting: str, default: tuple[str, str] | None = None) -> str:
        if weights.hub_spec(spec) is not None and not Path(spec).is_dir():
            return spec
        if default is not None:
            path = model_folder(spec, weights_dir=weights_dir, setting=setting, default=default[0], hub=default[1])
        else:
            path = weights.resolve_folder(spec, weights_dir=weights_dir, setting=setting)
        return weights.folder_digest(path, weights_dir=weights_dir)

    wanted: dict[str, Callable[[], str]] = {}
    if config.detector == "groundingdino":
        wanted["detector"] = partial(file, config.detector_weights, "detector_weights", config.detector_config)
        wanted["text_encoder"] = partial(folder, config.text_encoder, "text_encoder")
    elif config.detector == "hf-groundingdino":
        from segmentation.detectors.hf import FOLDER, HUB

        wanted["detector"] = partial(folder, config.detector_weights, "detector_weights", (FOLDER, HUB))
    if config.mask_model == "sam":
        wanted["mask_model"] = partial(file, config.mask_weights, "mask_weights", config.mask_config)
    elif config.mask_model.startswith("hf-"):
        from segmentation.mask_models.hf import KINDS

        if (kind := KINDS.get(config.mask_model)) is not None:
            wanted["mask_model"] = partial(folder, config.mask_weights, "mask_weights", (kind.folder, kind.hub))
    if embedder == "clip":
        from segmentation.embedders import clip

        wanted["embedder"] = partial(folder, config.embedder_weights, "embedder_weights", (clip.FOLDER, clip.HUB))
    found: dict[str, str] = {}
    lacking: list[str] = []
    for part, digest in wanted.items():
        try:
            found[part] = digest()
        except ConfigError as error:
            lacking.append(str(error))
    return found, lacking


_shared: list[Any] = []


def _people() -> Any:
    """One finder of persons for the portable detector and mask model of a process: its networks load once, and
    what it finds in a picture serves both."""
    if not _shared:
        from segmentation.mask_models.portable_people import PeopleFinder

        _shared.append(PeopleFinder())
    return _shared[0]


def _load(place: str) -> Any:
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def _known(what: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise ConfigError(f"[annotate] {what} = '{name}' is not known: {hint}Known are {', '.join(known)}")
