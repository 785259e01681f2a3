"""Weight files: where they are, that they are the right ones, and what to do when they are not there.

A weight is named by a path, by `owner/name@revision:file` on the Hub (fetched once, pinned commit), or by nothing at
all: then the published file of that name is looked for in the weights folder. Nothing is ever downloaded unless the
config names a Hub repository. No model is built here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError, TransientError, first_line
from engine.core.store import sha256_file

_SPEC = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?(?::(?P<file>[^:]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
DIGESTS = ".digests.json"


@dataclass(frozen=True, slots=True)
class Published:
    """A published weight file: its name, its digest, where its makers offer it, and its pinned place on the Hub."""

    filename: str
    sha256: str
    url: str
    hub: str


_DINO = "ShilongLiu/GroundingDINO@a94c9b567a2a374598f05c584e96798a170c56fb"
_DINO_URL = "https://github.com/IDEA-Research/GroundingDINO/releases/download"
_SAM = "ybelkada/segment-anything@7790786db131bcdc639f24a915d9f2c331d843ee"
_SAM_URL = "https://dl.fbaipublicfiles.com/segment_anything"

#: Published files by the config name of their model.
PUBLISHED = {
    "swin_t": Published(
        "groundingdino_swint_ogc.pth",
        "3b3ca2563c77c69f651d7bd133e97139c186df06231157a64c507099c52bc799",
        f"{_DINO_URL}/v0.1.0-alpha/groundingdino_swint_ogc.pth",
        f"{_DINO}:groundingdino_swint_ogc.pth",
    ),
    "swin_b": Published(
        "groundingdino_swinb_cogcoor.pth",
        "46270f7a822e6906b655b729c90613e48929d0f2bb8b9b76fd10a856f3ac6ab7",
        f"{_DINO_URL}/v0.1.0-alpha2/groundingdino_swinb_cogcoor.pth",
        f"{_DINO}:groundingdino_swinb_cogcoor.pth",
    ),
    "vit_b": Published(
        "sam_vit_b_01ec64.pth",
        "ec2df62732614e57411cdcf32a23ffdf28910380d03139ee0f4fcbe91eb8c912",
        f"{_SAM_URL}/sam_vit_b_01ec64.pth",
        f"{_SAM}:checkpoints/sam_vit_b_01ec64.pth",
    ),
    "vit_l": Published(
        "sam_vit_l_0b3195.pth",
        "3adcc4315b642a4d2101128f611684e8734c41232a17c648ed1693702a49a622",
        f"{_SAM_URL}/sam_vit_l_0b3195.pth",
        f"{_SAM}:checkpoints/sam_vit_l_0b3195.pth",
    ),
    "vit_h": Published(
        "sam_vit_h_4b8939.pth",
        "a7bf3b02f3ebf1267aba913ff637d9a2d5c33d3173bb679e46d9f338c26f262e",
        f"{_SAM_URL}/sam_vit_h_4b8939.pth",
        f"{_SAM}:checkpoints/sam_vit_h_4b8939.pth",
    ),
}


@dataclass(frozen=True, slots=True)
class HubSpec:
    """`owner/name@revision:file`, with empty strings for what is not said."""

    repo: str
    revision: str
    file: str


def hub_spec(spec: str) -> HubSpec | None:
    """Read a Hub name, None if the text is not one."""
    match = _SPEC.fullmatch(spec)
    if match is None:
        return None
    return HubSpec(match["repo"], match["revision"] or "", match["file"] or "")


def resolve_file(
    spec: str, *, weights_dir: Path, setting: str, published: Published | None = None, sha256: str = ""
) -> Path:
    """The path of one weight file.

    `spec` is a path (also relative to `weights_dir`), a Hub name with a file, or "" for the published file in
    `weights_dir`. A digest, given or known, is compared. `setting` is the config field that error messages name.
    Raises `ConfigError` (absent, wrong digest, unpinned name) or `TransientError` (the Hub does not answer).
    """
    if not spec:
        if published is None:
            raise ConfigError(f"{setting} is empty: give the path of a weight file, or owner/name@commit:file")
        path = weights_dir / published.filename
        if not path.is_file():
            raise ConfigError(
                f"{setting} is empty and {path} is not there: put {published.filename} into {weights_dir} "
                f"(from {published.url}, sha256 {published.sha256}), or set {setting} = {published.hub!r} to have it "
                "fetched once"
            )
        return _checked(path, published.sha256, weights_dir, setting)
    for path in (Path(spec).expanduser(), weights_dir / spec):
        if path.is_file():
            return _checked(path, sha256, weights_dir, setting)
    hub = hub_spec(spec)
    if hub is None or not hub.file:
        raise ConfigError(
            f"{setting} = {spec!r}: there is no such file, neither as it stands nor in {weights_dir}; give a path, or "
            "owner/name@commit:file for a file on the Hub"
        )
    known = sha256 or next((p.sha256 for p in PUBLISHED.values() if p.hub == spec), "")
    return _checked(_fetch_file(hub, weights_dir, setting), known, weights_dir, setting)


def resolve_folder(spec: str, *, weights_dir: Path, setting: str, needs: tuple[str, ...] = ("config.json",)) -> Path:
    """The path of a model folder in the layout of `transformers`: a path (also relative to `weights_dir`), or
    `owner/name@commit` on the Hub. Raises like `resolve_file`, also when a file of `needs` is missing."""
    candidates = [Path(spec).expanduser(), weights_dir / spec, weights_dir / spec.split("@")[0].split("/")[-1]]
    for path in candidates:
        if path.is_dir():
            missing = [name for name in needs if not (path / name).is_file()]
            if missing:
                raise ConfigError(f"{setting} = {spec!r}: {path} lacks {', '.join(missing)}")
            return path
    hub = hub_spec(spec)
    if hub is None or hub.file or not hub.revision:
        raise ConfigError(
            f"{setting} = {spec!r}: there is no such folder; put the model's files ({', '.join(needs)} ...) into "
            f"{candidates[-1]}, give the path of a folder, or owner/name@commit to have it fetched once from the Hub"
        )
    return _fetch_folder(hub, weights_dir, setting)


def file_digest(path: Path, *, weights_dir: Path) -> str:
    """sha256 of a file, remembered by size and modification time, so that gigabytes are hashed once."""
    stat = path.stat()
    mark = f"{stat.st_size}:{stat.st_mtime_ns}"
    memory = weights_dir / DIGESTS
    known = _read_digests(memory)
    entry = known.get(str(path.resolve()))
    if isinstance(entry, list) and len(entry) == 2 and entry[0] == mark:
        return str(entry[1])
    digest = sha256_file(path)
    known[str(path.resolve())] = [mark, digest]
    try:
        weights_dir.mkdir(parents=True, exist_ok=True)
        temporary = memory.with_name(f"{DIGESTS}.{id(known)}")
        temporary.write_text(json.dumps(known, indent=0, sort_keys=True), encoding="utf-8")
        temporary.replace(memory)
    except OSError:
        # A read-only weights folder only costs the hashing again.
        return digest
    return digest


def folder_digest(folder: Path, *, weights_dir: Path) -> str:
    """sha256 over the names and digests of a model folder's weight files, "" if it holds none."""
    import hashlib

    files = sorted(p for p in folder.iterdir() if p.suffix in (".safetensors", ".bin", ".pt", ".pth"))
    if not files:
        return ""
    text = "\n".join(f"{p.name} {file_digest(p, weights_dir=weights_dir)}" for p in files)
    return hashlib.sha256(text.encode()).hexdigest()


def load_state(path: Path) -> dict[str, Any]:
    """The tensors of a .safetensors, .pth or .bin file on the CPU, without the wrapping "model" key and the "module."
    prefix of published checkpoints. Pickles are read without running code. Raises `ConfigError` for other files."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state: Any = load_file(path)
        else:
            import torch

            state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ConfigError(f"{path} is not a weight file that can be read: {first_line(error)}") from error
    for key in ("model", "state_dict"):
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not state:
        raise ConfigError(f"{path} holds no named tensors")
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _checked(path: Path, sha256: str, weights_dir: Path, setting: str) -> Path:
    if sha256:
        found = file_digest(path, weights_dir=weights_dir)
        if found != sha256:
            raise ConfigError(
                f"{setting}: {path} has sha256 {found}, expected {sha256}: the file is damaged or another one; remove "
                "it and get it again, or name your own file by its path"
            )
    return path


def _read_digests(memory: Path) -> dict[str, Any]:
    try:
        found = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _pinned(hub: HubSpec, setting: str) -> str:
    if not _COMMIT.fullmatch(hub.revision):
        raise ConfigError(
            f"{setting}: {hub.repo} is not pinned (revision {hub.revision or 'missing'!r}): write the 40-digit commit, "
            f"as in {hub.repo}@0123456789abcdef0123456789abcdef01234567"
        )
    return hub.revision


def _fetch_file(hub: HubSpec, weights_dir: Path, setting: str) -> Path:
    from huggingface_hub import hf_hub_download

    revision = _pinned(hub, setting)
    return _ask_hub(
        lambda: hf_hub_download(hub.repo, hub.file, revision=revision, cache_dir=weights_dir / "hub"),
        f"{hub.repo}@{revision}:{hub.file}",
        setting,
        f"put the file {Path(hub.file).name} into {weights_dir} and set {setting} = {Path(hub.file).name!r}",
    )


def _fetch_folder(hub: HubSpec, weights_dir: Path, setting: str) -> Path:
    from huggingface_hub import snapshot_download

    revision = _pinned(hub, setting)
    folder = weights_dir / hub.repo.split("/")[-1]

    def download() -> str:
        # One format of the weights is enough, and never a pickle where safetensors are offered.
        path = ""
        for pattern in ("*.safetensors", "*.bin"):
            path = snapshot_download(
                hub.repo,
                revision=revision,
                cache_dir=weights_dir / "hub",
                allow_patterns=["*.json", "*.txt", "*.model", pattern],
            )
            if list(Path(path).glob(pattern)):
                break
        return path

    return _ask_hub(
        download,
        f"{hub.repo}@{revision}",
        setting,
        f"put the repository's config.json, *.safetensors and tokenizer files into {folder}",
    )


def _ask_hub(call: Any, name: str, setting: str, offline: str) -> Path:
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(call())
    except GatedRepoError as error:
        raise ConfigError(f"{setting}: {name} asks for its licence to be accepted and for HF_TOKEN") from error
    except (OfflineModeIsEnabled, LocalEntryNotFoundError) as error:
        raise ConfigError(f"{setting}: {name} is not here and the Hub cannot be reached: {offline}") from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        raise ConfigError(f"{setting}: the Hub has no {name} (or HF_TOKEN may not read it)") from error
    except (HfHubHTTPError, OSError) as error:
        raise TransientError(f"{setting}: {name} could not be fetched ({error}); run again, or {offline}") from error
