"""ROSE with single modules switched off, as segmenters of their own, so that one run scores them side by side.

The rows are those of the paper's ablation: the bare segmenter, IRAG alone, IRAG and TPE, IRAG and VPE, all three; with
WebSense off, so that every sample is retrieved. `rose` itself comes last, with WebSense as the config has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.config import Config, RoseSection
from engine.core.errors import ConfigError

#: Name of the wrapper -> its switches; an empty mapping leaves the config's own.
VARIANTS: Mapping[str, Mapping[str, bool]] = {
    "rose-irag": {"websense": False, "irag": True, "tpe": False, "vpe": False},
    "rose-irag-tpe": {"websense": False, "irag": True, "tpe": True, "vpe": False},
    "rose-irag-vpe": {"websense": False, "irag": True, "tpe": False, "vpe": True},
    "rose-full": {"websense": False, "irag": True, "tpe": True, "vpe": True},
    "rose": {},
}


def ablation(inner: str) -> tuple[str, ...]:
    """The names of all rows around the segmenter `inner`, in the paper's order. Raises `ConfigError` for a wrapper."""
    if not inner.strip() or inner.partition(":")[0] in VARIANTS or inner.startswith("search-chat:"):
        raise ConfigError(f"an ablation is of a bare segmenter, not of '{inner}': name for example 'portable'")
    return (inner, *(f"{name}:{inner}" for name in VARIANTS))


def switched(config: Config, variant: str) -> Config:
    """The config with a variant's switches. Raises KeyError for an unknown variant."""
    section = RoseSection.model_validate({**config.rose.model_dump(), **VARIANTS[variant]})
    return config.model_copy(update={"rose": section})
