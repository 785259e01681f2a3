"""The factories of the built-in segmenters. Each imports its own parts, so that a listing loads none of them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from engine.core.config import AnnotateSection, Config
from engine.core.errors import ConfigError
from engine.core.protocols import ChatModel, Detector, Embedder, MaskModel, Segmenter
from inference.segmenters.base import Wording
from inference.segmenters.deps import Built, InferenceDeps
from inference.segmenters.keys import portable_parts, real_parts, sam2_parts
from inference.segmenters.options import options_of

#: Detectors take the noun, with the name behind it where they can read names.
NOUN = Wording(form="phrase", names=False, max_chars=120)
NOUN_AND_NAME = Wording(form="phrase", max_chars=200)
#: The LISA family's own wording of a sentence; `phrase` is the paper's fixed prompt of the retrieval baselines.
LISA_WORDING = Wording(
    question="{text} Please output segmentation mask.", phrase="Please segment {text}.", max_chars=1200
)


def portable(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.portable import portable as make
    from inference.segmenters.portable import portable_phrases

    section = portable_parts(config.annotate)
    segmenter = make(detector_of(section, config, deps), mask_model_of(section, config, deps))
    return Built(segmenter=segmenter, wording=NOUN, annotate=section, vpe_phrases=portable_phrases)


def grounded_sam(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.grounded_sam import GroundedSam

    section = real_parts(config.annotate)
    segmenter = GroundedSam(detector_of(section, config, deps), mask_model_of(section, config, deps))
    return Built(segmenter=segmenter, wording=NOUN_AND_NAME, annotate=section)


def rose(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _rose("rose", config, deps, argument)


def rose_irag(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _rose("rose-irag", config, deps, argument)


def rose_irag_tpe(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _rose("rose-irag-tpe", config, deps, argument)


def rose_irag_vpe(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _rose("rose-irag-vpe", config, deps, argument)


def rose_full(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _rose("rose-full", config, deps, argument)


def _rose(variant: str, config: Config, deps: InferenceDeps, inner: str) -> Built:
    from inference.rose.ablation import switched
    from inference.rose.make import make_rose

    return Built(runner=make_rose(inner, switched(config, variant), deps=deps, name=f"{variant}:{inner}"))


def search_chat(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.rose.search_chat import make_search_chat

    return Built(runner=make_search_chat(argument, config, deps=deps))


def weights_folder(name: str, config: Config, deps: InferenceDeps) -> Path:
    """Where a segmenter's weights lie. Raises `ConfigError` if there is nothing."""
    told = config.score.weights.get(name)
    path = config.resolve(Path(told)) if told else deps.weights_of(config) / name
    if not path.exists():
        raise ConfigError(
            f"the segmenter '{name}' needs its weights at {path} and nothing is there: put the released checkpoint "
            f'there, or name its place with [score] weights = {{ {name} = "..." }}'
        )
    return path


def detector_of(section: AnnotateSection, config: Config, deps: InferenceDeps) -> Detector:
    if deps.make_detector is not None:
        return deps.make_detector(section)
    from segmentation.registry import make_detector

    return make_detector(section, weights_dir=deps.weights_of(config))


def mask_model_of(section: AnnotateSection, config: Config, deps: InferenceDeps) -> MaskModel:
    if deps.make_mask_model is not None:
        return deps.make_mask_model(section)
    from segmentation.registry import make_mask_model

    return make_mask_model(section, weights_dir=deps.weights_of(config))


def embedder_of(section: AnnotateSection, config: Config, deps: InferenceDeps) -> Embedder:
    if deps.make_embedder is not None:
        return deps.make_embedder(section)
    from segmentation.registry import make_embedder

    found = make_embedder(section, weights_dir=deps.weights_of(config))
    if found is None:
        raise ConfigError("VPE compares pictures and [annotate] names no embedder: set one, or [rose] vpe = false")
    return found


def _family(name: str, module: str, kind: str, config: Config, deps: InferenceDeps) -> Built:
    """A model of the LISA family, from the folder of its released checkpoint."""
    import importlib

    folder = weights_folder(name, config, deps)
    tower = config.score.weights.get(f"{name}.vision_tower")
    options = options_of(name, config)
    made = getattr(importlib.import_module(module), kind)(
        folder,
        vision_tower=config.resolve(Path(tower)) if tower else None,
        device=config.score.device,
        dtype=config.annotate.dtype,
        **options,
    )
    return Built(segmenter=cast("Segmenter", made), wording=LISA_WORDING, annotate=real_parts(config.annotate))


def lisa(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _family("lisa", "inference.segmenters.lisa", "Lisa", config, deps)


def sesame(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _family("sesame", "inference.segmenters.sesame", "Sesame", config, deps)


def read(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _family("read", "inference.segmenters.read", "Read", config, deps)


def sam3(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.sam3 import Sam3

    segmenter = Sam3(
        weights_folder("sam3", config, deps),
        device=config.score.device,
        dtype=config.annotate.dtype,
        **options_of("sam3", config),
    )
    return Built(segmenter=segmenter, wording=NOUN, annotate=real_parts(config.annotate))


def sam2(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.grounded_sam import GroundedSam

    section = sam2_parts(config)
    segmenter = GroundedSam(detector_of(section, config, deps), mask_model_of(section, config, deps), name="sam2")
    return Built(segmenter=segmenter, wording=NOUN_AND_NAME, annotate=section)


def files(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.files import FilesRunner

    if not argument:
        raise ConfigError("'files' reads predictions from a place: write 'files:PATH'")
    return Built(runner=FilesRunner(config.resolve(Path(argument))))


def remote(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _served("remote", config, deps, url=argument)


def seem(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _served("seem", config, deps)


def gres(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _served("gres", config, deps)


def cris(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    return _served("cris", config, deps)


def _served(name: str, config: Config, deps: InferenceDeps, *, url: str = "") -> Built:
    """A model behind the protocol of `remote`, at the address that the name or the config gives."""
    from engine.web.search.record import Records
    from inference.segmenters.registry import require_address
    from inference.segmenters.remote import Remote

    if not url:
        require_address(name, config)
    where = url or config.score.endpoints[name]
    segmenter = Remote(
        where,
        **options_of(name, config),
        records=Records(deps.records) if deps.records is not None else None,
        offline=config.score.offline,
    )
    return Built(segmenter=segmenter, wording=segmenter.wording(), annotate=real_parts(config.annotate))


def seg_zero(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.model_boxes import SIDES
    from inference.segmenters.seg_zero import PROMPT, SegZero

    options = options_of("seg-zero", config)
    told = options.get("space", "resized_840")
    space = next((known for known in SIDES if known == told), None)
    if space is None:
        raise ConfigError(f"[score] options.seg-zero.space = '{told}' is not known; known are {', '.join(SIDES)}")
    section = real_parts(config.annotate)
    segmenter = SegZero(
        vision_chat("seg-zero", deps),
        mask_model_of(section, config, deps),
        space=space,
        prompt=options.get("prompt", PROMPT),
        max_tokens=options.get("max_tokens", 2000),
    )
    return Built(segmenter=segmenter, annotate=section)


def llmseg(config: Config, *, deps: InferenceDeps, argument: str) -> Built:
    from inference.segmenters.llmseg import LlmSeg

    options = {key: value for key, value in options_of("llmseg", config).items() if key != "model"}
    segmenter = LlmSeg(vision_chat("llmseg", deps), **options)
    return Built(segmenter=segmenter, annotate=real_parts(config.annotate))


def vision_chat(name: str, deps: InferenceDeps) -> ChatModel:
    """The chat model that sees images. Raises `ConfigError` without one."""
    if deps.vision_chat is None:
        raise ConfigError(
            f"the segmenter '{name}' needs a chat model that sees images: set [score] options.{name}.model and "
            f"endpoints.{name}, or [llm] model and sees_images = true, and OPENAI_API_KEY (any text for a server that "
            "checks none)"
        )
    return deps.vision_chat
