"""Answers of the loopback Hub: JSON, errors, and how files and repositories are described."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from support.hub_repos import Commit, File, HubError, Repo

LICENSES = {"cc-by-nc-4.0", "cc-by-4.0", "apache-2.0", "mit", "cc0-1.0", "other", "unknown"}
TASKS = {"visual-question-answering", "image-segmentation", "image-to-text", "question-answering"}
SIZES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}


def validate_card(text: str) -> list[str]:
    """What the Hub would say against a card's front matter: the fields whose values are closed lists."""
    match = re.match(r"\s*---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    if match is None:
        return ["the card has no front matter"]
    try:
        found = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        return [f"not YAML: {error}"]
    errors = []
    if "license" in found and found["license"] not in LICENSES:
        errors.append(f"license {found.get('license')!r} is not known")
    errors += [f"task {task!r} is not known" for task in found.get("task_categories", []) if task not in TASKS]
    errors += [f"size {size!r} is not known" for size in found.get("size_categories", []) if size not in SIZES]
    languages = found.get("language", [])
    errors += [f"language {item!r} is not known" for item in languages if not re.fullmatch(r"[a-z]{2,3}", str(item))]
    return errors


def json_answer(value: object, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def error_answer(error: HubError) -> tuple[int, dict[str, str], bytes]:
    _, headers, data = json_answer({"error": error.message, **error.extra})
    headers["X-Error-Message"] = error.message
    if error.code:
        headers["X-Error-Code"] = error.code
    return error.status, headers, data


def entry_answer(path: str, file: File, commit: Commit) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "file", "oid": file.blob, "size": file.size, "path": path}
    out["lastCommit"] = {"id": commit.oid, "title": commit.title, "date": commit.date}
    if file.lfs:
        out["lfs"] = {"oid": file.lfs, "size": file.size, "pointerSize": 134}
    return out


def info_answer(repo: Repo, commit: Commit) -> dict[str, Any]:
    siblings: list[dict[str, Any]] = []
    for path, file in sorted(commit.tree.items()):
        item: dict[str, Any] = {"rfilename": path, "blobId": file.blob, "size": file.size}
        if file.lfs:
            item["lfs"] = {"sha256": file.lfs, "size": file.size, "pointerSize": 134}
        siblings.append(item)
    return {
        "_id": "0" * 24,
        "id": repo.name,
        "author": repo.name.split("/")[0],
        "sha": commit.oid,
        "private": repo.private,
        "gated": False,
        "disabled": False,
        "tags": [],
        "downloads": 0,
        "likes": 0,
        "createdAt": repo.created,
        "lastModified": commit.date,
        "siblings": siblings,
    }
