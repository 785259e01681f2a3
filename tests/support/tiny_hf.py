"""Models of transformers at toy size, written as folders in that library's layout. Random weights, made on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Ids that transformers' Grounding DINO has for its marks, whatever the word list says.
MARKS = {0: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]", 1012: ".", 1029: "?"}
WORDS = ("a", "red", "green", "square", "circle", "dog", "tug", "boat", "ferry", "mayor")


def seed_weights(model: Any, *, scale: float = 0.15) -> None:
    """Random weights that make outputs depend on all inputs: norms near one, everything else normal."""
    import torch

    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            noise = torch.randn(value.shape, generator=generator)
            norm = value.dim() == 1 and name.endswith("weight")
            value.copy_(1 + 0.1 * noise if norm else scale * noise)


def write_tokenizer(folder: Path) -> int:
    """A BERT tokenizer of few words; returns the size of its word list."""
    from transformers import BertTokenizerFast

    size = 1040
    words = [MARKS.get(i, f"[unused{i}]") for i in range(size)]
    letters = [*"abcdefghijklmnopqrstuvwxyz'-", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz'-")]
    for index, word in enumerate([*WORDS, *letters], start=200):
        words[index] = word
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(words) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(vocabulary), do_lower_case=True, model_max_length=512).save_pretrained(folder)
    return size


def write_grounding_dino(folder: Path) -> Path:
    """Grounding DINO with images shown at a shorter side of 160."""
    from transformers import GroundingDinoConfig, GroundingDinoForObjectDetection, SwinConfig

    size = write_tokenizer(folder)
    config = GroundingDinoConfig(
        backbone_config=SwinConfig(
            embed_dim=16,
            depths=[1, 1, 1, 1],
            num_heads=[1, 1, 2, 2],
            window_size=7,
            out_features=["stage2", "stage3", "stage4"],
        ),
        text_config={
            "model_type": "bert",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "vocab_size": size,
        },
        d_model=64,
        encoder_layers=2,
        encoder_ffn_dim=64,
        encoder_attention_heads=4,
        decoder_layers=2,
        decoder_ffn_dim=64,
        decoder_attention_heads=4,
        num_queries=12,
        disable_custom_kernels=True,
    )
    model = GroundingDinoForObjectDetection(config).eval()
    seed_weights(model, scale=0.08)
    model.save_pretrained(folder)
    preprocessor = {"size": {"shortest_edge": 160, "longest_edge": 266}}
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor), encoding="utf-8")
    return folder


def write_sam(folder: Path, *, side: int = 256) -> Path:
    """SAM in transformers' layout."""
    from transformers import SamConfig, SamModel

    config = SamConfig(
        vision_config={
            "hidden_size": 32,
            "output_channels": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": side,
            "patch_size": 16,
            "window_size": 7,
            "global_attn_indexes": [1],
            "mlp_dim": 64,
            "num_pos_feats": 16,
        },
        prompt_encoder_config={
            "hidden_size": 32,
            "image_size": side,
            "patch_size": 16,
            "image_embedding_size": side // 16,
        },
        mask_decoder_config={
            "hidden_size": 32,
            "mlp_dim": 64,
            "num_attention_heads": 4,
            "iou_head_hidden_dim": 32,
        },
    )
    model = SamModel(config).eval()
    seed_weights(model)
    model.save_pretrained(folder)
    return folder


def write_sam2(folder: Path, *, side: int = 128) -> Path:
    """SAM 2 in transformers' layout."""
    from transformers import Sam2Config, Sam2ImageProcessor, Sam2Model

    sizes = [[side // 4] * 2, [side // 8] * 2, [side // 16] * 2]
    config = Sam2Config(
        vision_config={
            "backbone_config": {
                "model_type": "sam2_hiera_det_model",
                "hidden_size": 8,
                "image_size": [side, side],
                "blocks_per_stage": [1, 1, 2, 1],
                "embed_dim_per_stage": [8, 16, 32, 64],
                "num_attention_heads_per_stage": [1, 1, 2, 2],
                "window_size_per_stage": [8, 4, 4, 4],
                "global_attention_blocks": [3],
            },
            "backbone_channel_list": [64, 32, 16, 8],
            "backbone_feature_sizes": sizes,
            "fpn_hidden_size": 32,
        },
        prompt_encoder_config={"hidden_size": 32, "image_size": side, "patch_size": 16},
        mask_decoder_config=_decoder(),
    )
    model = Sam2Model(config).eval()
    seed_weights(model)
    model.save_pretrained(folder)
    Sam2ImageProcessor(size={"height": side, "width": side}).save_pretrained(folder)
    return folder


def sam3_vision(side: int) -> dict[str, Any]:
    """The vision half of a tiny SAM 3 for images of a square of `side`, a multiple of 14."""
    grid = side // 14
    return {
        "backbone_config": {
            "model_type": "sam3_vit_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": side,
            "patch_size": 14,
            "window_size": 4,
            "global_attn_indexes": [1],
            "pretrain_image_size": 56,
        },
        "fpn_hidden_size": 32,
        "backbone_feature_sizes": [[grid * 4] * 2, [grid * 2] * 2, [grid] * 2],
    }


def write_sam3_tracker(folder: Path, *, side: int = 112) -> Path:
    """SAM 3's half that takes boxes, in transformers' layout."""
    from transformers import Sam3ImageProcessor, Sam3TrackerConfig, Sam3TrackerModel

    config = Sam3TrackerConfig(
        vision_config={"model_type": "sam3_vision_model", **sam3_vision(side)},
        prompt_encoder_config={"hidden_size": 32, "image_size": side, "patch_size": 14},
        mask_decoder_config=_decoder(),
    )
    model = Sam3TrackerModel(config).eval()
    seed_weights(model)
    model.save_pretrained(folder)
    Sam3ImageProcessor(size={"height": side, "width": side}).save_pretrained(folder)
    return folder


def write_sam3(folder: Path, *, side: int = 112) -> Path:
    """SAM 3's half that takes phrases, with its tokenizer, in transformers' layout."""
    from transformers import CLIPTokenizer, Sam3Config, Sam3ImageProcessor, Sam3Model

    letters = [*"abcdefghijklmnopqrstuvwxyz", *(f"{c}</w>" for c in "abcdefghijklmnopqrstuvwxyz")]
    words = {word: i for i, word in enumerate([*letters, "<|startoftext|>", "<|endoftext|>"])}
    small = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    config = Sam3Config(
        vision_config=sam3_vision(side),
        text_config={
            "model_type": "clip_text_model",
            **small,
            "vocab_size": len(words),
            "num_hidden_layers": 2,
            "max_position_embeddings": 32,
            "projection_dim": 16,
            "bos_token_id": words["<|startoftext|>"],
            "eos_token_id": words["<|endoftext|>"],
        },
        geometry_encoder_config={**small, "num_layers": 1},
        detr_encoder_config={**small, "num_layers": 2},
        detr_decoder_config={**small, "num_layers": 2, "num_queries": 8},
        mask_decoder_config={"hidden_size": 32, "num_attention_heads": 2, "num_upsampling_stages": 3},
    )
    model = Sam3Model(config).eval()
    seed_weights(model)
    model.save_pretrained(folder)
    Sam3ImageProcessor(size={"height": side, "width": side}).save_pretrained(folder)
    CLIPTokenizer(vocab=words, merges=[], model_max_length=32).save_pretrained(folder)
    return folder


def _decoder() -> dict[str, Any]:
    return {"hidden_size": 32, "mlp_dim": 64, "num_attention_heads": 4, "iou_head_hidden_dim": 32}
