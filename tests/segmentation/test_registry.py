from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.schema import canonical_json
from segmentation.embedders.portable import PortableEmbedder
from segmentation.registry import (
    annotator_key,
    embedder_name,
    lacking_weights,
    make_detector,
    make_embedder,
    make_mask_model,
)

PORTABLE = AnnotateSection(detector="portable", mask_model="portable")


def test_portable_parts_share_one_finder_of_people() -> None:
    detector = make_detector(PORTABLE, weights_dir=Path("nowhere"))
    masker = make_mask_model(PORTABLE, weights_dir=Path("nowhere"))
    assert detector.name == masker.name == "portable"
    assert detector.people is masker.people  # type: ignore[attr-defined]


def test_embedders_by_name() -> None:
    there = Path("nowhere")
    assert make_embedder(PORTABLE, weights_dir=there) is None
    with_references = PORTABLE.model_copy(update={"references": there})
    assert isinstance(make_embedder(with_references, weights_dir=there), PortableEmbedder)
    assert embedder_name(AnnotateSection(references=there)) == "clip"
    assert make_embedder(AnnotateSection(embedder="none", references=there), weights_dir=there) is None


@pytest.mark.parametrize(
    ("field", "wrong", "near"),
    [
        ("detector", "grounding-dino", "groundingdino"),
        ("mask_model", "hf-sam4", "hf-sam"),
        ("embedder", "clap", "clip"),
    ],
)
def test_unknown_names_are_refused_with_the_nearest(field: str, wrong: str, near: str) -> None:
    config = PORTABLE.model_copy(update={field: wrong})
    make = {"detector": make_detector, "mask_model": make_mask_model, "embedder": make_embedder}[field]
    with pytest.raises(ConfigError, match=f"'{wrong}' is not known: did you mean '{near}"):
        make(config, weights_dir=Path("nowhere"))
    with pytest.raises(ConfigError, match="is not known"):
        annotator_key(config)


def test_the_key_follows_what_changes_results(tmp_path: Path) -> None:
    key = canonical_json(annotator_key(PORTABLE))
    for same in ({"device": "cpu"}, {"batch_images": 9}, {"mask_config": "vit_b"}, {"dtype": "bfloat16"}):
        assert canonical_json(annotator_key(PORTABLE.model_copy(update=same))) == key
    for other in ({"min_margin": 0.3}, {"box_threshold": 0.5}, {"min_stability": 0.1}, {"second_prompt": True}):
        assert canonical_json(annotator_key(PORTABLE.model_copy(update=other))) != key
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "names.json").write_text('{"name": "one"}', encoding="utf-8")
    first = annotator_key(PORTABLE.model_copy(update={"references": tmp_path}))
    assert canonical_json(first) != key
    moved = annotator_key(PORTABLE.model_copy(update={"references": Path("refs")}), references=tmp_path)
    assert moved == first  # the place of the folder is not in the key, its contents are


def test_absent_weights_stop_a_run_before_it_begins_and_all_are_named_at_once(tmp_path: Path) -> None:
    config = AnnotateSection()
    wanted = ("groundingdino_swint_ogc.pth", "bert-base-uncased", "sam_vit_h_4b8939.pth")
    with pytest.raises(ConfigError) as caught:
        annotator_key(config, weights_dir=tmp_path)
    assert all(name in str(caught.value) for name in wanted)
    told = lacking_weights(config, weights_dir=tmp_path)
    assert [name in words for name, words in zip(wanted, told, strict=True)] == [True] * 3
    (tmp_path / "bert-base-uncased").mkdir()
    (tmp_path / "bert-base-uncased" / "config.json").write_text("{}", encoding="utf-8")
    assert len(lacking_weights(config, weights_dir=tmp_path)) == 2


def test_a_model_in_its_default_folder_counts_by_its_weights(tmp_path: Path) -> None:
    config = AnnotateSection(detector="hf-groundingdino", mask_model="hf-sam2", embedder="clip")
    names = ("grounding-dino-tiny", "sam2.1-hiera-large", "clip-vit-base-patch32")
    told = lacking_weights(config, weights_dir=tmp_path)
    assert [name in words for name, words in zip(names, told, strict=True)] == [True] * 3
    keys = []
    for data in (b"one", b"two"):
        for name in names:
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "config.json").write_text("{}", encoding="utf-8")
            (tmp_path / name / "model.safetensors").write_bytes(data)
        assert lacking_weights(config, weights_dir=tmp_path) == []
        keys.append(annotator_key(config, weights_dir=tmp_path)["models"]["weights"])
    assert all(keys[0][part] != keys[1][part] for part in ("detector", "mask_model", "embedder"))


@given(st.floats(0, 1))
def test_the_key_is_json(margin: float) -> None:
    assert "portable" in canonical_json(annotator_key(PORTABLE.model_copy(update={"min_margin": margin})))


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, segmentation.annotate, segmentation.registry, segmentation.shards, segmentation.references\n"
        "heavy = {'torch', 'transformers', 'cv2', 'prefect', 'datasets', 'huggingface_hub'} & set(sys.modules)\n"
        "sys.exit(' '.join(sorted(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
