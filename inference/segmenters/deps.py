"""What segmenters are made from: the outside world as values, given by whoever wires a run. Nothing is loaded here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from engine.core.config import AnnotateSection, Config
from engine.core.protocols import ChatModel, Detector, Embedder, MaskModel, Search, Segmenter, TextEmbedder
from engine.web.search.vision import ImageEntities
from inference.segmenters.base import Runner, Wording


@dataclass(frozen=True, slots=True)
class InferenceDeps:
    """Search and models behind Protocols; None where the run has none, which is an error only for who needs it.

    `chat` reads pages and decides for WebSense, `seeing_chat` is the same where it takes images and says what they
    show; `search_chat` is a model that searches by itself (the retrieval baseline), `vision_chat` the one that Seg-Zero
    and LLMSeg ask; `text_embedder` embeds chunks; `records` is the folder in which remote
    segmenters' answers are written down. The three factories make the annotator's parts of a section; None
    means those of `segmentation.registry`.
    """

    search: Search | None = None
    chat: ChatModel | None = None
    search_chat: ChatModel | None = None
    vision_chat: ChatModel | None = None
    seeing_chat: ChatModel | None = None
    text_embedder: TextEmbedder | None = None
    image_entities: ImageEntities | None = None
    weights_dir: Path | None = None
    records: Path | None = None
    make_detector: Callable[[AnnotateSection], Detector] | None = None
    make_mask_model: Callable[[AnnotateSection], MaskModel] | None = None
    make_embedder: Callable[[AnnotateSection], Embedder] | None = None

    def weights_of(self, config: Config) -> Path:
        """The folder of weight files: given here, in the config, or `<home>/weights`."""
        if self.weights_dir is not None:
            return self.weights_dir
        return config.resolve(config.annotate.weights_dir) if config.annotate.weights_dir else config.home / "weights"


@dataclass(frozen=True, slots=True)
class Built:
    """What a factory makes: a segmenter with its wording, or a runner that takes whole samples.

    `annotate` names the parts that VPE uses around this segmenter, `vpe_phrases` the words their detector gets.
    """

    segmenter: Segmenter | None = None
    runner: Runner | None = None
    wording: Wording = field(default_factory=Wording)
    annotate: AnnotateSection | None = None
    vpe_phrases: Callable[[str], tuple[str, ...]] | None = None


class Factory(Protocol):
    """Makes a segmenter from the config. `argument` is what stands after the colon of its name, or empty.

    Raises `ConfigError` for a missing key, weight file, search or model; nothing is downloaded.
    """

    def __call__(self, config: Config, *, deps: InferenceDeps, argument: str) -> Built | Segmenter | Runner: ...
