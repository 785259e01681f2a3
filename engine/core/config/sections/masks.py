"""The section about masks: detector, mask model, who is who, and the gates."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from engine.core.config.sections.base import Section


class AnnotateSection(Section):
    """Detector, mask model, binding and gates."""

    # what concerns faces goes into the stage's key where they are compared, and only there
    NOT_IN_KEY = frozenset(
        {"device", "batch_images", "shard_images", "weights_dir", "faces", "face_weights", "face_sha256"}
    )

    detector: str = "groundingdino"
    """groundingdino, hf-groundingdino, portable."""
    mask_model: str = "sam"
    """sam, hf-sam, hf-sam2, hf-sam3, portable."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:0 ..."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Number type of the models on a GPU."""
    weights_dir: Path | None = None
    """Folder with weight files; None means <home>/weights."""
    detector_config: str = "swin_t"
    """swin_t or swin_b, or the path of a config file."""
    detector_weights: str = ""
    """Path, or owner/name@revision:file on the Hub; empty means the published checkpoint's pinned place."""
    text_encoder: str = "bert-base-uncased"
    """Path or Hub name of Grounding DINO's text encoder."""
    mask_config: str = "vit_h"
    """vit_b, vit_l or vit_h."""
    mask_weights: str = ""
    """Path, or owner/name@revision:file on the Hub."""
    embedder: str = "auto"
    """auto, clip, portable, none: what compares crops with reference pictures; auto means none without references, the
    portable one beside the portable detector, else clip."""
    embedder_weights: str = ""
    """Folder of a CLIP model, or owner/name@revision on the Hub; empty means clip-vit-base-patch32 in weights_dir."""
    box_threshold: float = Field(default=0.35, ge=0, le=1)
    """Least score of a candidate box (Grounded-SAM's default)."""
    text_threshold: float = Field(default=0.25, ge=0, le=1)
    """Least score of a token to belong to a phrase (Grounded-SAM's default)."""
    nms_iou: float = Field(default=0.6, ge=0, le=1)
    """Boxes of one phrase that overlap more are one object."""
    min_margin: float = Field(default=0.1, ge=0, le=1)
    """Least lead of the chosen candidate over the next."""
    references: Path | None = None
    """Folder of reference pictures, one sub-folder per entity with pictures and a names.json."""
    faces: bool = False
    """Compare faces with those of reference pictures. Face vectors are biometric data: read docs/ethics.md first."""
    face_weights: str = ""
    """File of a face network for OpenCV's FaceRecognizerSF (SFace in ONNX), absolute or in weights_dir; none comes with
    the package."""
    face_sha256: str = ""
    """sha256 that this file must have; empty takes any."""
    marks: bool = False
    """Show the candidates as numbered marks to the vision model of [llm], as one more kind of evidence."""
    min_mask_score: float = Field(default=0.5, ge=0, le=1)
    """Gate: least predicted quality of a mask."""
    min_stability: float = Field(default=0.7, ge=0, le=1)
    """Gate: least stability of a mask under a shifted threshold."""
    min_area_share: float = Field(default=0.002, ge=0, le=1)
    """Gate: least share of the image."""
    max_area_share: float = Field(default=0.9, ge=0, le=1)
    """Gate: largest share of the image."""
    min_box_fill: float = Field(default=0.2, ge=0, le=1)
    """Gate: least share of its box that a mask fills."""
    max_parts_loss: float = Field(default=0.2, ge=0, le=1)
    """Gate: largest share of a mask outside its largest connected part."""
    max_overlap: float = Field(default=0.3, ge=0, le=1)
    """Gate: largest share of a mask that lies in another entity's mask."""
    max_border_share: float = Field(default=0.6, ge=0, le=1)
    """Gate: largest share of the image's border that a mask may run along on one side."""
    second_prompt: bool = False
    """Look again with the bare noun of the entity's type; boxes that then are not found are rejected."""
    min_prompt_iou: float = Field(default=0.7, ge=0, le=1)
    """Gate: least overlap of the bound box with the second prompt's."""
    min_face_share: float = Field(default=0.6, ge=0, le=1)
    """Gate: least share of a person's face (its box) that their mask covers, where a face is found."""
    batch_images: int = Field(default=4, ge=1)
    """Images per forward pass."""
    shard_images: int = Field(default=64, ge=1)
    """Images per committed shard."""
