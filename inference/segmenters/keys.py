"""What of the config decides a segmenter's predictions: part of their key, so that a change runs them again.

Everything that does not change a mask stays out: where files lie, concurrency, addresses. Weights count by their
digest. Nothing is loaded.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.core.config import AnnotateSection, Config
from engine.core.errors import ConfigError
from engine.core.store import sha256_bytes, sha256_file
from inference.rose.ablation import VARIANTS, switched
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.options import options_of

#: What a detector, a mask model or an embedder reads of `[annotate]`; gates and binding are the annotator's own.
_PARTS = (
    "detector",
    "detector_config",
    "mask_model",
    "mask_config",
    "embedder",
    "dtype",
    "box_threshold",
    "text_threshold",
    "nms_iou",
)
_FAMILY = ("lisa", "sesame", "read", "sam3")


def segmenter_key(name: str, config: Config, *, weights_dir: Path, search: str = "") -> dict[str, Any]:
    """Plain values that name how `name` predicts. `search` is the digest of what a local index is made of.

    Raises `ConfigError` for an unknown name, absent weights or absent files, so that a run stops before it begins.
    """
    from inference.segmenters.registry import BUILT_IN, check, plugin_of

    check(name)
    head, _, argument = name.partition(":")
    # a misspelt setting is told before anything is predicted
    options = options_of(head, config) if head in BUILT_IN else dict(config.score.options.get(head, {}))
    own: dict[str, Any] = {"name": name, "options": options}
    if head == "portable":
        return own | {"parts": _parts(portable_parts(config.annotate), weights_dir)}
    if head == "grounded-sam":
        return own | {"parts": _parts(real_parts(config.annotate), weights_dir)}
    if head == "sam2":
        return own | {"parts": _parts(sam2_parts(config), weights_dir)}
    if head in _FAMILY:
        return own | {"dtype": config.annotate.dtype, "weights": _folder(head, config, weights_dir)}
    if head in VARIANTS:
        return own | _rose(argument, switched(config, head), weights_dir=weights_dir, search=search)
    if head == "search-chat":
        from inference.rose.search_chat import PROMPT

        inner = segmenter_key(argument, config, weights_dir=weights_dir)
        return own | {"inner": inner, "prompt": prompt_digest(PROMPT)}
    if head == "seg-zero":
        from inference.segmenters.seg_zero import PROMPT as TASK

        told = str(options.get("prompt", TASK))
        return own | {
            "parts": _parts(real_parts(config.annotate), weights_dir),
            "model": options.get("model", config.llm.model),
            "prompt": prompt_digest(told, package="inference.segmenters"),
        }
    if head == "llmseg":
        from inference.segmenters.llmseg import DETECT, REFINE, TRACE

        prompts = [prompt_digest(name, package="inference.segmenters") for name in (DETECT, TRACE, REFINE)]
        return own | {"model": options.get("model", config.llm.model), "prompts": prompts}
    if head == "files":
        return own | {"files": tree_digest(config.resolve(Path(argument)))}
    if head in BUILT_IN:
        return own
    point = plugin_of(head)
    distribution = point.dist.name if point.dist is not None else ""
    try:
        return own | {"plugin": point.value, "version": version(distribution) if distribution else ""}
    except PackageNotFoundError:
        return own | {"plugin": point.value, "version": ""}


def portable_parts(section: AnnotateSection) -> AnnotateSection:
    """The section with the portable parts throughout."""
    return section.model_copy(update={"detector": "portable", "mask_model": "portable", "embedder": "portable"})


def real_parts(section: AnnotateSection) -> AnnotateSection:
    """The section with Grounding DINO, SAM and CLIP where it names the portable parts: a segmenter is what its name
    says."""
    update: dict[str, str] = {}
    if section.detector == "portable":
        update["detector"] = "groundingdino"
    if section.mask_model == "portable":
        update["mask_model"] = "sam"
    if section.embedder in ("portable", "auto", "none"):
        update["embedder"] = "clip"
    return section.model_copy(update=update)


def sam2_parts(config: Config) -> AnnotateSection:
    """The section with SAM 2 as its mask model, from `[score] weights.sam2` where that is set."""
    section = real_parts(config.annotate)
    told = config.score.weights.get("sam2", section.mask_weights if section.mask_model == "hf-sam2" else "")
    if told and "@" not in told:
        told = str(config.resolve(Path(told)))
    return section.model_copy(update={"mask_model": "hf-sam2", "mask_weights": told})


def prompt_digest(name: str, *, package: str = "inference.rose") -> str:
    """sha256 of one of a package's prompt files."""
    from engine.llm.prompts import load_prompt

    return load_prompt(package, name).digest


def tree_digest(path: Path) -> str:
    """sha256 over a file, or over a folder's files with their names. Raises `ConfigError` if there is nothing."""
    if path.is_file():
        return sha256_file(path)
    if not path.is_dir():
        raise ConfigError(f"there are no predictions at {path}: name a folder of masks, a .jsonl or a .parquet file")
    told = "".join(
        f"{file.relative_to(path).as_posix()} {sha256_file(file)}\n"
        for file in sorted(path.rglob("*"))
        if file.is_file()
    )
    return sha256_bytes(told.encode())


def _rose(inner: str, config: Config, *, weights_dir: Path, search: str) -> dict[str, Any]:
    from inference.rose.answer import ExtractReader
    from inference.rose.rank import PortableTextEmbedder, WordRanker
    from inference.rose.read_llm import MAP, REDUCE, REWRITE
    from inference.rose.rose import VERSION
    from inference.rose.seen import PROMPT as ENTITIES
    from inference.rose.tpe import VERSION as TPE_VERSION
    from inference.rose.websense import PROMPT

    section = config.rose
    head = inner.partition(":")[0]
    parts = portable_parts(config.annotate) if head == "portable" else real_parts(config.annotate)
    parts = sam2_parts(config) if head == "sam2" else parts
    found: dict[str, Any] = {
        "version": [VERSION, TPE_VERSION],
        "rose": section.keyed(),
        "inner": segmenter_key(inner, config, weights_dir=weights_dir),
        "search": search if section.irag else "",
        "cutoff_lag_days": config.score.cutoff_lag_days,
    }
    if section.vpe:
        found["parts"] = _parts(parts, weights_dir, embeds=True)
    if section.irag:
        found["ranker"] = {"portable": PortableTextEmbedder.name, "words": WordRanker.name}.get(section.embedder, "")
        if section.image_entities == "vision-model":
            found["entities"] = {"model": config.llm.model, "prompt": prompt_digest(ENTITIES)}
    if section.answerer == "llm":
        prompts = [prompt_digest(name) for name in (PROMPT, REWRITE, MAP, REDUCE)]
        found["reader"] = {"model": config.llm.model, "temperature": config.llm.temperature, "prompts": prompts}
    else:
        found["reader"] = {"name": ExtractReader.name}
    return found


def _parts(section: AnnotateSection, weights_dir: Path, *, embeds: bool = False) -> dict[str, Any]:
    """Settings and weights of the parts; those of the embedder only where it is one (`embeds`) or is named."""
    from segmentation.registry import annotator_key

    # the folder of reference pictures is the annotator's evidence, not a part
    told = section.model_copy(update={"references": None})
    if section.embedder == "clip" and not embeds and not section.embedder_weights:
        told = told.model_copy(update={"embedder": "none"})
    key = annotator_key(told, weights_dir=weights_dir)
    settings = key["settings"] | {"embedder": section.embedder}
    return {"settings": {name: settings[name] for name in _PARTS if name in settings}, "models": key["models"]}


def _folder(name: str, config: Config, weights_dir: Path) -> str:
    from inference.segmenters.builtin import weights_folder
    from segmentation import weights

    path = weights_folder(name, config, InferenceDeps(weights_dir=weights_dir))
    if path.is_file():
        return weights.file_digest(path, weights_dir=weights_dir)
    return weights.folder_digest(path, weights_dir=weights_dir)
