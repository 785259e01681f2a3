"""The released checkpoints' parameter names, and reading them part by part.

One file (or several with an index) holds the language model, the projector of the image, the projection of [SEG] and
a whole SAM; the image tower lies in a folder of its own. Tensors are cast while they are read, so that memory never
holds two copies of a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError

_SAM = "model.visual_model."
_TEXT = "model.text_hidden_fcs.0."
_PROJECTOR = "model.mm_projector."
#: Not ours: buffers that the library computes itself, and a tower that some conversions leave in.
_IGNORED = re.compile(r".*\.rotary_emb\.inv_freq$|.*vision_tower.*")


@dataclass(slots=True)
class Parts:
    """Tensors by part, under the part's own names."""

    language: dict[str, Any] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    projector: dict[str, Any] = field(default_factory=dict)
    text: dict[str, Any] = field(default_factory=dict)
    sam: dict[str, Any] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    def put(self, name: str, tensor: Any) -> None:
        """File a tensor under its part."""
        if _IGNORED.fullmatch(name):
            return
        for prefix, part in ((_SAM, self.sam), (_TEXT, self.text), (_PROJECTOR, self.projector)):
            if name.startswith(prefix):
                part[name.removeprefix(prefix)] = tensor
                return
        if name.startswith("lm_head."):
            self.head[name.removeprefix("lm_head.")] = tensor
        elif name.startswith(("model.layers.", "model.embed_tokens.", "model.norm.")):
            self.language[name.removeprefix("model.")] = tensor
        else:
            self.unknown.append(name)


def read_parts(folder: Path, *, device: Any, dtype: Any) -> Parts:
    """All tensors of a checkpoint's folder, cast to `dtype` on `device`. Raises `ConfigError` when one is missing."""
    files = weight_files(folder)
    parts = Parts()
    for path in files:
        for name, tensor in _tensors(path):
            parts.put(name, tensor.to(device=device, dtype=dtype) if tensor.is_floating_point() else tensor.to(device))
    empty = [name for name in ("language", "head", "projector", "text", "sam") if not getattr(parts, name)]
    if empty or parts.unknown:
        raise ConfigError(
            f"{folder} is not a LISA, SESAME or READ checkpoint: no tensors for {', '.join(empty) or '-'}, unknown "
            f"names {', '.join(parts.unknown[:3]) or '-'}"
        )
    return parts


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a folder in a fixed order, safetensors before pickles. Raises `ConfigError` if none."""
    for pattern in ("model*.safetensors", "pytorch_model*.bin"):
        files = sorted(folder.glob(pattern))
        if files:
            return files
    raise ConfigError(
        f"{folder} holds no weights (model*.safetensors or pytorch_model*.bin): put the released checkpoint there"
    )


def _tensors(path: Path) -> Iterator[tuple[str, Any]]:
    if path.suffix == ".safetensors":
        from safetensors import safe_open

        with safe_open(path, framework="pt") as handle:
            for name in handle.keys():  # noqa: SIM118 - a handle is no mapping
                yield name, handle.get_tensor(name)
        return
    import torch

    yield from torch.load(path, map_location="cpu", weights_only=True, mmap=True).items()


def fill(module: Any, state: dict[str, Any], *, what: str, folder: Path) -> Any:
    """Put tensors into a module that was built without memory. Raises `ConfigError` unless names and shapes fit."""
    try:
        result = module.load_state_dict(state, strict=False, assign=True)
    except RuntimeError as error:
        lines = str(error).splitlines()
        raise ConfigError(f"{folder}: the {what} has other sizes than config.json says: {lines[-1].strip()}") from error
    if result.missing_keys or result.unexpected_keys:
        raise ConfigError(
            f"{folder}: the {what} does not fit: missing {', '.join(result.missing_keys[:3]) or '-'}, unknown "
            f"{', '.join(result.unexpected_keys[:3]) or '-'}"
        )
    return module.eval().requires_grad_(False)
