"""Building groundingdino-py's model on transformers 5, from a published or an own checkpoint.

The package's wrapper around BERT uses a method that transformers 5 no longer has, so a text encoder of our own stands
in its place: the same layers under the same names, called with an additive mask. It is put in while the model is
built and taken out again. BERT's weights are part of the published checkpoints, so only its config and tokenizer are
needed. What goes in and comes out of the model is in `groundingdino`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import math
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from engine.core.errors import ConfigError
from segmentation.detectors.groundingdino_image import LONG_SIDE, SHORT_SIDE

#: Config files that groundingdino-py ships, by the names of our config.
PACKAGED = {"swin_t": "GroundingDINO_SwinT_OGC.py", "swin_b": "GroundingDINO_SwinB_cfg.py"}
#: Names that published checkpoints have and the model lacks, or the other way round, without harm.
_HARMLESS = ("label_enc.", "bert.embeddings.position_ids", "relative_position_index")
#: The package writes this width into two of its functions instead of taking the model's.
_LITERAL_WIDTH = 256
_lock = threading.Lock()


def read_config(name: str) -> dict[str, Any]:
    """The model's arguments: `swin_t`, `swin_b`, the path of a config file in the package's form (plain assignments of
    literals; it is read, not run), or of a JSON file that may also give the backbone's sizes under "swin". Either may
    give `short_side` and `long_side`, the size in pixels at which images are shown."""
    if name in PACKAGED:
        found = importlib.util.find_spec("groundingdino")
        if found is None or not found.submodule_search_locations:
            raise ConfigError("detector groundingdino needs the extra [gpu]: pip install 'nest-data-engine[gpu]'")
        path = Path(found.submodule_search_locations[0]) / "config" / PACKAGED[name]
    else:
        path = Path(name).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            raw = json.loads(text)
            args = dict(raw.get("groundingdino", raw))
            args["swin"] = raw.get("swin")
        else:
            args = {
                str(node.targets[0].id): ast.literal_eval(node.value)
                for node in ast.parse(text).body
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            }
    except (OSError, ValueError, SyntaxError) as error:
        raise ConfigError(
            f"detector_config = {name!r} cannot be read ({error}): use swin_t, swin_b or the path of a config file"
        ) from error
    if "hidden_dim" not in args:
        raise ConfigError(f"detector_config = {name!r} is no Grounding DINO config: it has no hidden_dim")
    args.setdefault("short_side", SHORT_SIDE)
    args.setdefault("long_side", LONG_SIDE)
    # Recomputing activations saves memory in training only.
    args.update(use_checkpoint=False, use_transformer_ckpt=False)
    return args


def build_model(args: dict[str, Any], state: dict[str, Any], *, text_encoder: Path) -> Any:
    """The package's model with `state` loaded, in eval mode on the CPU, its tokenizer as `.tokenizer`.

    Raises `ConfigError` when the weights don't fit the config.
    """
    has_bert = any(name.startswith("bert.encoder.") for name in state)
    model = fresh_model(args, text_encoder=text_encoder, stored_text=not has_bert)
    try:
        result = model.load_state_dict(state, strict=False)
    except RuntimeError as error:
        raise ConfigError(
            "the detector's weights don't fit its config, they are of other sizes: "
            f"{str(error).splitlines()[-1].strip()}; check detector_config and detector_weights"
        ) from error
    kept_bert = () if has_bert else ("bert.",)
    missing = [n for n in result.missing_keys if not any(h in n for h in (*_HARMLESS, *kept_bert))]
    extra = [n for n in result.unexpected_keys if not any(h in n for h in _HARMLESS)]
    if missing or extra:
        raise ConfigError(
            f"the detector's weights don't fit its config: {len(missing)} names are missing (e.g. "
            f"{', '.join(missing[:3]) or '-'}), {len(extra)} are unknown (e.g. {', '.join(extra[:3]) or '-'}); check "
            "detector_config and detector_weights"
        )
    return model


def fresh_model(args: dict[str, Any], *, text_encoder: Path, stored_text: bool = False) -> Any:
    """The package's model with random weights; `stored_text` takes the text encoder's from its folder."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(text_encoder)

    def language_model(_: object) -> Any:
        config = BertConfig.from_pretrained(text_encoder)
        if stored_text:
            return BertModel.from_pretrained(text_encoder, config=config, attn_implementation="eager")
        return BertModel._from_config(config, attn_implementation="eager")

    with _lock, _quiet():
        from groundingdino.models import build_model as build
        from groundingdino.models.GroundingDINO import groundingdino as main
        from groundingdino.models.GroundingDINO.backbone import backbone
        from groundingdino.models.GroundingDINO.backbone.swin_transformer import SwinTransformer

        sizes: dict[str, Any] = args.get("swin") or {}

        def swin(_: str, pretrain_img_size: int, **rest: Any) -> Any:
            return SwinTransformer(pretrain_img_size=pretrain_img_size, **{**sizes, **rest})

        with contextlib.ExitStack() as stack:
            stack.enter_context(_swapped(main, "BertModelWarper", text_encoder_class()))
            names = main.get_tokenlizer
            stack.enter_context(_swapped(names, "get_tokenlizer", lambda _: tokenizer))
            stack.enter_context(_swapped(names, "get_pretrained_language_model", language_model))
            if sizes:
                stack.enter_context(_swapped(backbone, "build_swin_transformer", swin))
            model = build(SimpleNamespace(**{**args, "text_encoder_type": str(text_encoder)}))
    for layer in model.transformer.encoder.text_layers:
        layer.register_forward_pre_hook(_mask_per_image, with_kwargs=True)
    return model.eval()


def _mask_per_image(layer: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Puts the masks of a batch in the order that attention reads them, all heads of an image together.

    The package repeats them head by head, so that images with different captions get each other's masks.
    """
    mask = kwargs["src_mask"]
    if mask.dim() == 3 and mask.shape[0] == kwargs["src"].shape[1] and layer.nhead > 1:
        kwargs = {**kwargs, "src_mask": mask.repeat_interleave(layer.nhead, dim=0)}
    return args, kwargs


def text_encoder_class() -> Any:
    """The class that stands in for the package's `BertModelWarper` (made lazily, since it needs torch)."""
    import torch

    class TextEncoder(torch.nn.Module):  # type: ignore[misc]
        """BERT's layers under their own names; attention follows a mask (batch, tokens, tokens) of phrases."""

        def __init__(self, bert_model: Any) -> None:
            super().__init__()
            self.config = bert_model.config
            self.embeddings = bert_model.embeddings
            self.encoder = bert_model.encoder
            self.pooler = bert_model.pooler

        def forward(
            self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None, position_ids: Any = None
        ) -> dict[str, Any]:
            states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids)
            keep = attention_mask if attention_mask.dim() == 3 else attention_mask[:, None, :]
            additive = torch.zeros_like(keep, dtype=states.dtype)
            additive = additive.masked_fill(~keep.bool(), torch.finfo(states.dtype).min)[:, None]
            encoded = self.encoder(states, attention_mask=additive)
            return {"last_hidden_state": encoded[0]}

    return TextEncoder


@contextlib.contextmanager
def forward_context(hidden_dim: int) -> Iterator[None]:
    """Around a forward pass: the package's warnings silenced, and its two literal widths tied to the model's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hidden_dim == _LITERAL_WIDTH:
            yield
            return
        from groundingdino.models.GroundingDINO import transformer

        original = transformer.get_sine_pos_embed

        def text_code(positions: Any, num_pos_feats: int = 128, **rest: Any) -> Any:
            return original(positions, num_pos_feats=hidden_dim, **rest)

        def query_code(positions: Any) -> Any:
            return _query_code(positions, hidden_dim // 2)

        with (
            _lock,
            _swapped(transformer, "get_sine_pos_embed", text_code),
            _swapped(transformer, "gen_sineembed_for_position", query_code),
        ):
            yield


def _query_code(positions: Any, width: int) -> Any:
    """Sine code of boxes (queries, batch, 4) as (y, x, w, h), `width` numbers each, temperature 10000."""
    import torch

    steps = torch.arange(width, dtype=torch.float32, device=positions.device)
    frequency = 10000 ** (2 * torch.div(steps, 2, rounding_mode="floor") / width)
    parts = []
    for axis in (1, 0, 2, 3)[: positions.shape[-1]]:
        angle = positions[:, :, axis, None] * (2 * math.pi) / frequency
        parts.append(torch.stack((angle[..., 0::2].sin(), angle[..., 1::2].cos()), dim=3).flatten(2))
    return torch.cat(parts, dim=2)


@contextlib.contextmanager
def _swapped(module: Any, name: str, value: object) -> Iterator[None]:
    """Another value for a module's name for a while; callers hold the lock."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The package prints to stdout, where a command's data goes, and warns of its own old imports."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        yield
