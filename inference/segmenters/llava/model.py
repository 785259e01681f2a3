"""The networks of one checkpoint, built at the sizes that its tensors and config.json say.

LLaMA and CLIP come from transformers, SAM from segment-anything; the two small projections are here. How they are
chained is in `pipeline`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from inference.segmenters.llava.names import Parts, fill, read_parts
from inference.segmenters.llava.tokenizer import Tokenizer
from segmentation.device import pick_device
from segmentation.mask_models.sam_model import DEVIATION, MEAN, SamSizes, build_sam, read_sizes
from segmentation.pretrained import load_pretrained, require

#: The decoder's sizes that cannot be read from tensors; a file of this name in the folder may say others.
SAM_CONFIG = "sam_config.json"


@dataclass(frozen=True, slots=True)
class Networks:
    """What a checkpoint consists of. `tower_side` is the picture's side for CLIP in pixels, `patches` the number of
    vectors it becomes; `sam_side` is SAM's input side."""

    tokenizer: Tokenizer
    language: Any
    head: Any
    projector: Any
    text: Any
    sam: Any
    tower: Any
    tower_layer: int
    tower_side: int
    patches: int
    sam_side: int
    device: Any
    dtype: Any


def load_networks(folder: Path, *, vision_tower: Path | None, device: str, dtype: str) -> Networks:
    """Everything of a released checkpoint's folder. Raises `ConfigError` when a part is absent or does not fit."""
    require("the LISA family", "torch", "torchvision", "transformers", "segment_anything", "sentencepiece")
    import torch

    if not folder.is_dir():
        raise ConfigError(f"{folder} is not there: put the released checkpoint (config.json, weights, tokenizer) there")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder}/config.json cannot be read: {error}") from error
    place, kind = pick_device(device), getattr(torch, dtype)
    tokenizer = Tokenizer.load(folder)
    tower_folder = find_tower(folder, config, vision_tower)
    parts = read_parts(folder, device=place, dtype=kind)
    sizes = sam_sizes(parts.sam, folder)
    tower = _tower(tower_folder).to(device=place, dtype=kind)
    grid = int(tower.config.image_size) // int(tower.config.patch_size)
    return Networks(
        tokenizer=tokenizer,
        language=_language(config, parts, folder).to(place),
        head=_linear(parts.head, "lm_head", folder),
        projector=_stack(parts.projector, torch.nn.GELU, "mm_projector", folder),
        text=_stack(parts.text, torch.nn.ReLU, "text_hidden_fcs", folder),
        sam=_sam(parts.sam, sizes, folder, place, kind),
        tower=tower,
        tower_layer=int(config.get("mm_vision_select_layer", -2)),
        tower_side=int(tower.config.image_size),
        patches=grid * grid,
        sam_side=sizes.image_size,
        device=place,
        dtype=kind,
    )


def find_tower(folder: Path, config: dict[str, Any], told: Path | None) -> Path:
    """The image tower's folder: as told, else by its name beside or inside the checkpoint. Raises `ConfigError`."""
    name = str(config.get("vision_tower") or config.get("mm_vision_tower") or "clip-vit-large-patch14")
    short = name.split("/")[-1]
    places = [told] if told is not None else [folder.parent / short, folder / short, Path(name)]
    for path in places:
        if (path / "config.json").is_file():
            return path
    raise ConfigError(
        f"the image tower {name} is not at {places[0]}: put its config.json and weights there, or say where it lies"
    )


def sam_sizes(state: dict[str, Any], folder: Path) -> SamSizes:
    """SAM's sizes from its tensors; those of the decoder's attention are the published ones unless a file says."""
    if (folder / SAM_CONFIG).is_file():
        return read_sizes(str(folder / SAM_CONFIG))
    width = int(state["image_encoder.pos_embed"].shape[-1])
    patch = int(state["image_encoder.patch_embed.proj.weight"].shape[-1])
    grid = int(state["image_encoder.pos_embed"].shape[1])
    depth = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("image_encoder.blocks."))
    reach = [int(state[f"image_encoder.blocks.{i}.attn.rel_pos_h"].shape[0]) for i in range(depth)]
    base = SamSizes(
        encoder_embed_dim=width,
        encoder_depth=depth,
        encoder_num_heads=width // int(state["image_encoder.blocks.0.attn.rel_pos_h"].shape[1]),
        # Blocks that see the whole picture have relative positions for all of it.
        encoder_global_attn_indexes=tuple(i for i, r in enumerate(reach) if r == 2 * grid - 1),
        prompt_embed_dim=int(state["image_encoder.neck.0.weight"].shape[0]),
        image_size=grid * patch,
        vit_patch_size=patch,
    )
    local = [r for r in reach if r != 2 * grid - 1]
    return replace(base, window_size=(min(local) + 1) // 2) if local else base


def _language(config: dict[str, Any], parts: Parts, folder: Path) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaModel
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    if config.get("rope_scaling"):
        raise ConfigError(f"{folder}/config.json has rope_scaling, which none of the released checkpoints uses")
    heads = int(config["num_attention_heads"])
    llama = LlamaConfig(
        # Rows of the table, not the config's word: added tokens made it longer.
        vocab_size=int(parts.language["embed_tokens.weight"].shape[0]),
        hidden_size=int(config["hidden_size"]),
        intermediate_size=int(config["intermediate_size"]),
        num_hidden_layers=int(config["num_hidden_layers"]),
        num_attention_heads=heads,
        num_key_value_heads=int(config.get("num_key_value_heads") or heads),
        max_position_embeddings=int(config.get("max_position_embeddings", 2048)),
        rms_norm_eps=float(config["rms_norm_eps"]),
        rope_parameters={"rope_type": "default", "rope_theta": float(config.get("rope_theta", 10000.0))},
    )
    with torch.device("meta"):
        model = LlamaModel(llama)
    fill(model, parts.language, what="language model", folder=folder)
    # Its frequencies are computed, not stored, so they need memory of their own.
    model.rotary_emb = LlamaRotaryEmbedding(llama)
    return model


def _sam(state: dict[str, Any], sizes: SamSizes, folder: Path, device: Any, dtype: Any) -> Any:
    import torch

    with torch.device("meta"):
        model = build_sam(sizes)
    fill(model, state, what="SAM", folder=folder)
    # Places are coded in float32 whatever the model's number type; a half of a pixel is much in a code of sines.
    model.prompt_encoder.pe_layer.float()
    for name, values in (("pixel_mean", MEAN), ("pixel_std", DEVIATION)):
        setattr(model, name, torch.tensor(values, device=device, dtype=torch.float32)[:, None, None])
    return model


def _tower(folder: Path) -> Any:
    from transformers import CLIPVisionModel

    return load_pretrained(CLIPVisionModel, folder, "vision_tower").eval().requires_grad_(False)


def _linear(state: dict[str, Any], what: str, folder: Path) -> Any:
    import torch

    rows, columns = state["weight"].shape
    with torch.device("meta"):
        layer = torch.nn.Linear(int(columns), int(rows), bias="bias" in state)
    return fill(layer, state, what=what, folder=folder)


def _stack(state: dict[str, Any], activation: Any, what: str, folder: Path) -> Any:
    """One linear layer, or linear, activation, linear, as the names say."""
    import torch

    if "weight" in state:
        return _linear(state, what, folder)
    layers: list[Any] = []
    for index in (0, 2):
        own = {k.removeprefix(f"{index}."): v for k, v in state.items() if k.startswith(f"{index}.")}
        if "weight" not in own:
            raise ConfigError(f"{folder}: the {what} does not fit: found {', '.join(sorted(state)[:4])}")
        layers += [_linear(own, what, folder), activation()]
    return torch.nn.Sequential(*layers[:-1])
