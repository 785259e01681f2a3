from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from support import tiny_models

from engine.core.errors import ConfigError
from inference.segmenters.llava.model import load_networks, sam_sizes
from inference.segmenters.llava.names import Parts, read_parts, weight_files
from segmentation.mask_models.sam_model import SIZES, build_sam

pytestmark = pytest.mark.gpu_extra
RELEASED = ("LISA-7B-v1", "SESAME-READ-LLaVA-v1.5-7B")


def released(name: str) -> dict[str, list[int]]:
    raw = json.loads((tiny_models.VECTORS / f"released_names/{name}.json").read_text(encoding="utf-8"))
    return {n: [32003 if size == "V" else size for size in shape] for n, shape in raw["tensors"].items()}


@pytest.mark.parametrize("name", RELEASED)
def test_every_released_name_has_a_place_of_the_right_shape(name: str) -> None:
    from transformers import LlamaConfig, LlamaModel

    parts = Parts()
    for own, shape in released(name).items():
        parts.put(own, torch.empty(shape, device="meta"))
    assert parts.unknown == []
    with torch.device("meta"):
        llama = LlamaModel(LlamaConfig(vocab_size=32003))
        sam = build_sam(sam_sizes(parts.sam, Path("nowhere")))
    for module, state in ((llama, parts.language), (sam, parts.sam)):
        assert {n: tuple(t.shape) for n, t in module.state_dict().items()} == {
            n: tuple(t.shape) for n, t in state.items()
        }
    assert sam_sizes(parts.sam, Path("nowhere")) == SIZES["vit_h"]
    assert sorted(parts.text) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    projector = ["bias", "weight"] if name.startswith("LISA") else ["0.bias", "0.weight", "2.bias", "2.weight"]
    assert sorted(parts.projector) == projector


def test_the_towers_names_are_those_of_its_own_repository() -> None:
    from transformers import CLIPVisionConfig, CLIPVisionModel

    path = tiny_models.VECTORS / "released_names/clip-vit-large-patch14_vision.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["tensors"]
    config = CLIPVisionConfig(
        hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=14
    )
    with torch.device("meta"):
        model = CLIPVisionModel(config)
    own = {n.removeprefix("vision_model."): list(t.shape) for n, t in model.state_dict().items()}
    assert own == {n.removeprefix("vision_model."): list(s) for n, s in stored.items() if "position_ids" not in n}


def test_shards_and_pickles_are_read_like_one_file(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    state = tiny_models.lisa_state()
    names = sorted(state)
    half = len(names) // 2
    for folder in ("shards", "pickles"):
        (tmp_path / folder).mkdir()
    for number, part in enumerate((names[:half], names[half:]), start=1):
        own = {n: state[n].contiguous() for n in part}
        save_file(own, tmp_path / f"shards/model-{number:05d}-of-00002.safetensors")
        torch.save(own, tmp_path / f"pickles/pytorch_model-{number:05d}-of-00002.bin")
    whole = read_parts(tiny_models.VECTORS / "lisa/checkpoint", device="cpu", dtype=torch.float32)
    for folder in ("shards", "pickles"):
        assert len(weight_files(tmp_path / folder)) == 2
        found = read_parts(tmp_path / folder, device="cpu", dtype=torch.float32)
        for part in ("language", "head", "projector", "text", "sam"):
            one, other = getattr(whole, part), getattr(found, part)
            assert one.keys() == other.keys()
            assert all(torch.equal(one[n], other[n]) for n in one)


def test_what_is_missing_or_foreign_is_told(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    with pytest.raises(ConfigError, match="holds no weights"):
        weight_files(tmp_path)
    save_file({"model.norm.weight": torch.ones(2), "other.weight": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(ConfigError, match=r"no tensors for head, projector, text, sam, unknown names other\.weight"):
        read_parts(tmp_path, device="cpu", dtype=torch.float32)
    folder = tiny_models.write_family(tmp_path, "lisa")
    with pytest.raises(ConfigError, match="image tower clip-tiny-patch14-224 is not at"):
        load_networks(folder, vision_tower=tmp_path / "elsewhere", device="cpu", dtype="float32")
    config = json.loads((folder / "config.json").read_text())
    for change, said in (
        ({"num_hidden_layers": 4}, "language model does not fit"),
        ({"intermediate_size": 64}, "language model has other sizes"),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling"),
    ):
        (folder / "config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ConfigError, match=said):
            load_networks(folder, vision_tower=None, device="cpu", dtype="float32")
    (folder / "config.json").unlink()
    with pytest.raises(ConfigError, match=r"config\.json cannot be read"):
        load_networks(folder, vision_tower=None, device="cpu", dtype="float32")
    with pytest.raises(ConfigError, match="is not there: put the released checkpoint"):
        load_networks(tmp_path / "absent", vision_tower=None, device="cpu", dtype="float32")
