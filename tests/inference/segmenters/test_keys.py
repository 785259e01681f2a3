"""What decides predictions is in their key, and what does not is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.core.config import AnnotateSection, Config, LlmSection, RoseSection, ScoreSection
from engine.core.errors import ConfigError
from inference.rose.ablation import VARIANTS, ablation, switched
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import check, segmenter_key


def key(name: str, tmp_path: Path, *, search: str = "d1", **sections: Any) -> dict[str, Any]:
    config = Config(**{"rose": RoseSection(answerer="extract"), **sections})
    return segmenter_key(name, config, weights_dir=tmp_path, search=search)


def test_the_portable_key_knows_nothing_of_retrieval(tmp_path: Path) -> None:
    plain = key("portable", tmp_path)
    assert plain == key("portable", tmp_path, search="d2", rose=RoseSection(top_pages=9))
    assert plain == key("portable", tmp_path, annotate=AnnotateSection(min_margin=0.5, batch_images=9))
    assert plain != key("portable", tmp_path, annotate=AnnotateSection(box_threshold=0.5))


@pytest.mark.parametrize(
    "change",
    [
        {"rose": RoseSection(answerer="extract", top_pages=9)},
        {"rose": RoseSection(answerer="extract", low_similarity=0.1)},
        {"rose": RoseSection(answerer="llm"), "llm": LlmSection(model="m")},
        {"score": ScoreSection(cutoff_lag_days=3)},
        {"search": "d2"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_changes_rose_changes_its_key(tmp_path: Path, change: dict[str, Any]) -> None:
    assert key("rose:portable", tmp_path) != key("rose:portable", tmp_path, **change)


def test_what_only_changes_speed_or_places_does_not(tmp_path: Path) -> None:
    same = {
        "rose": RoseSection(answerer="extract", batch=3, searxng_url="http://other"),
        "score": ScoreSection(max_in_flight=3, shard_samples=9, device="cpu", endpoints={"remote": "x"}),
    }
    assert key("rose:portable", tmp_path) == key("rose:portable", tmp_path, **same)


def test_the_rows_of_the_ablation_have_keys_of_their_own(tmp_path: Path) -> None:
    names = ablation("portable")
    assert names[0] == "portable"
    assert [name.partition(":")[0] for name in names[1:]] == list(VARIANTS)
    for name in names:
        check(name)
    keys = [str(key(name, tmp_path)) for name in names]
    assert len(set(keys)) == len(names)
    full = switched(Config(rose=RoseSection(vpe=False, top_pages=9)), "rose-full").rose
    assert (full.websense, full.irag, full.tpe, full.vpe, full.top_pages) == (False, True, True, True, 9)


def test_files_count_by_their_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "masks"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"1")
    one = key(f"files:{folder}", tmp_path)
    (folder / "a.png").write_bytes(b"2")
    assert key(f"files:{folder}", tmp_path) != one
    with pytest.raises(ConfigError, match="no predictions at"):
        key(f"files:{tmp_path / 'none'}", tmp_path)


def test_absent_weights_stop_before_anything_is_loaded(tmp_path: Path) -> None:
    for name in ("lisa", "rose:lisa", "sam3"):
        with pytest.raises(ConfigError, match="needs its weights"):
            key(name, tmp_path)
    assert InferenceDeps(weights_dir=tmp_path).weights_of(Config()) == tmp_path


def test_weights_in_default_folders_count_and_only_what_a_segmenter_uses_is_asked_for(tmp_path: Path) -> None:
    real = AnnotateSection(detector="hf-groundingdino", mask_model="hf-sam2")
    names = ("grounding-dino-tiny", "sam2.1-hiera-large", "clip-vit-base-patch32")

    def put(name: str, data: bytes) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "config.json").write_text("{}", encoding="utf-8")
        (tmp_path / name / "model.safetensors").write_bytes(data)

    for name in names[:2]:
        put(name, b"one")
    # no pictures are compared in it: it needs no embedder
    plain = key("grounded-sam", tmp_path, annotate=real)
    with pytest.raises(ConfigError, match=names[2]):
        key("rose:grounded-sam", tmp_path, annotate=real)
    put(names[2], b"one")
    rose = key("rose:grounded-sam", tmp_path, annotate=real)
    assert key("grounded-sam", tmp_path, annotate=real) == plain
    put(names[2], b"two")
    assert key("grounded-sam", tmp_path, annotate=real) == plain
    assert key("rose:grounded-sam", tmp_path, annotate=real) != rose
    put(names[1], b"two")
    assert key("grounded-sam", tmp_path, annotate=real) != plain
