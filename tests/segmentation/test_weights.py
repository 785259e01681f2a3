from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from engine.core.errors import ConfigError, TransientError
from segmentation import weights

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_a_path_as_it_stands_or_inside_the_weights_folder(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    inside = tmp_path / "w" / "own.pth"
    inside.write_bytes(b"1")
    for spec in (str(inside), "own.pth"):
        found = weights.resolve_file(spec, weights_dir=tmp_path / "w", setting="mask_weights")
        assert found.samefile(inside)


def test_the_published_file_is_looked_for_and_checked(tmp_path: Path) -> None:
    published = weights.Published("a.pth", hashlib.sha256(b"right").hexdigest(), "https://example.org/a.pth", "o/n@r:a")
    with pytest.raises(ConfigError, match=r"put a\.pth into .*https://example\.org/a\.pth.*'o/n@r:a'"):
        weights.resolve_file("", weights_dir=tmp_path, setting="mask_weights", published=published)
    (tmp_path / "a.pth").write_bytes(b"wrong")
    with pytest.raises(ConfigError, match=r"mask_weights: .* has sha256 .*, expected"):
        weights.resolve_file("", weights_dir=tmp_path, setting="mask_weights", published=published)
    (tmp_path / "a.pth").write_bytes(b"right")
    found = weights.resolve_file("", weights_dir=tmp_path, setting="mask_weights", published=published)
    assert found == tmp_path / "a.pth"
    with pytest.raises(ConfigError, match="mask_weights is empty"):
        weights.resolve_file("", weights_dir=tmp_path, setting="mask_weights")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("absent.pth", "there is no such file"),
        ("owner/name", "there is no such file"),
        ("owner/name:file.pth", "not pinned"),
        ("owner/name@main:file.pth", "not pinned .revision 'main'"),
    ],
)
def test_what_is_neither_a_file_nor_a_pinned_name_is_refused(tmp_path: Path, spec: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        weights.resolve_file(spec, weights_dir=tmp_path, setting="mask_weights")


def test_offline_says_which_file_to_put_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*_: object, **__: object) -> str:
        raise LocalEntryNotFoundError("no connection")

    monkeypatch.setattr(hub, "hf_hub_download", unreachable)
    monkeypatch.setattr(hub, "snapshot_download", unreachable)
    with pytest.raises(ConfigError, match=r"cannot be reached: put the file b\.pth into .* mask_weights = 'b\.pth'"):
        weights.resolve_file(f"o/n@{COMMIT}:a/b.pth", weights_dir=tmp_path, setting="mask_weights")
    with pytest.raises(ConfigError, match=r"put the repository's config\.json"):
        weights.resolve_folder(f"o/n@{COMMIT}", weights_dir=tmp_path, setting="text_encoder")
    monkeypatch.setattr(hub, "hf_hub_download", lambda *_, **__: (_ for _ in ()).throw(OSError("reset")))
    with pytest.raises(TransientError, match="run again, or put the file"):
        weights.resolve_file(f"o/n@{COMMIT}:a/b.pth", weights_dir=tmp_path, setting="mask_weights")


def test_a_pinned_name_is_fetched_into_the_weights_folder_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def fetch(repo: str, file: str, *, revision: str, cache_dir: Path) -> str:
        asked.append((repo, file, revision, cache_dir))
        path = cache_dir / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"weights")
        return str(path)

    monkeypatch.setattr(hub, "hf_hub_download", fetch)
    digest = hashlib.sha256(b"weights").hexdigest()
    spec = f"o/n@{COMMIT}:f.pth"
    path = weights.resolve_file(spec, weights_dir=tmp_path, setting="mask_weights", sha256=digest)
    assert path.read_bytes() == b"weights"
    assert asked == [("o/n", "f.pth", COMMIT, tmp_path / "hub")]
    with pytest.raises(ConfigError, match="expected 00"):
        weights.resolve_file(spec, weights_dir=tmp_path, setting="mask_weights", sha256="00")
    # Published places carry their digest with them.
    with pytest.raises(ConfigError, match="expected ec2df627"):
        weights.resolve_file(weights.PUBLISHED["vit_b"].hub, weights_dir=tmp_path, setting="mask_weights")


def test_folders_are_resolved_like_files(tmp_path: Path) -> None:
    folder = tmp_path / "bert-tiny"
    folder.mkdir()
    with pytest.raises(ConfigError, match=r"lacks config\.json"):
        weights.resolve_folder("bert-tiny", weights_dir=tmp_path, setting="text_encoder")
    (folder / "config.json").write_text("{}")
    for spec in ("bert-tiny", str(folder), f"owner/bert-tiny@{COMMIT}"):
        assert weights.resolve_folder(spec, weights_dir=tmp_path, setting="text_encoder").samefile(folder)
    with pytest.raises(ConfigError, match="there is no such folder"):
        weights.resolve_folder("owner/absent", weights_dir=tmp_path, setting="text_encoder")


def test_a_digest_is_computed_once_and_again_when_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "big.pth"
    path.write_bytes(b"one")
    hashed = []
    monkeypatch.setattr(
        weights, "sha256_file", lambda p: (hashed.append(p), hashlib.sha256(p.read_bytes()).hexdigest())[1]
    )
    memory = tmp_path / "w"
    first = weights.file_digest(path, weights_dir=memory)
    assert weights.file_digest(path, weights_dir=memory) == first == hashlib.sha256(b"one").hexdigest()
    assert len(hashed) == 1
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert weights.file_digest(path, weights_dir=memory) == hashlib.sha256(b"two").hexdigest()
    (memory / weights.DIGESTS).write_text("[]")
    assert weights.file_digest(path, weights_dir=memory) == hashlib.sha256(b"two").hexdigest()
    assert len(hashed) == 3
    # A weights folder that cannot be written to costs time, nothing else.
    assert weights.file_digest(path, weights_dir=path / "no-folder") == hashlib.sha256(b"two").hexdigest()
    assert sorted(p.name for p in memory.iterdir()) == [weights.DIGESTS]


def test_tensors_are_read_without_wrapping_and_without_running_code(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch").save_file
    torch.save({"model": {"module.a.weight": torch.ones(2)}, "epoch": 3}, tmp_path / "a.pth")
    save({"a.weight": torch.ones(2)}, tmp_path / "a.safetensors")
    for name in ("a.pth", "a.safetensors"):
        state = weights.load_state(tmp_path / name)
        assert list(state) == ["a.weight"]
        np.testing.assert_array_equal(state["a.weight"].numpy(), [1, 1])

    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    torch.save({"a": Bomb()}, tmp_path / "bomb.pth")
    with pytest.raises(ConfigError, match=r"bomb\.pth is not a weight file"):
        weights.load_state(tmp_path / "bomb.pth")
    assert not (tmp_path / "made").exists()
    (tmp_path / "b.safetensors").write_text(json.dumps({}))
    with pytest.raises(ConfigError, match="not a weight file"):
        weights.load_state(tmp_path / "b.safetensors")


def test_a_folders_digest_covers_its_weight_files(tmp_path: Path) -> None:
    assert weights.folder_digest(tmp_path, weights_dir=tmp_path / "w") == ""
    (tmp_path / "model.safetensors").write_bytes(b"1")
    (tmp_path / "config.json").write_text("{}")
    first = weights.folder_digest(tmp_path, weights_dir=tmp_path / "w")
    (tmp_path / "config.json").write_text('{"a": 1}')
    assert weights.folder_digest(tmp_path, weights_dir=tmp_path / "w") == first
    (tmp_path / "model-2.safetensors").write_bytes(b"2")
    assert weights.folder_digest(tmp_path, weights_dir=tmp_path / "w") != first
