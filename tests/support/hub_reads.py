"""Looking things up on the loopback Hub: repositories, revisions, refs, history and trees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from support.hub_answers import entry_answer, info_answer, json_answer
from support.hub_repos import HubError, Repo

if TYPE_CHECKING:
    from support.hub import LoopbackHub


class Reads:
    """Routes of the request handler; it brings what is declared here."""

    if TYPE_CHECKING:
        parts: list[str]
        query: dict[str, str]
        bearer: str
        hub: LoopbackHub

        def _repo(self) -> Repo: ...

    def _list(self, body: bytes) -> Any:
        author = self.query.get("author")
        known = [self.hub.repos[name] for name in sorted(self.hub.repos)]
        seen = [repo for repo in known if not repo.private or self.bearer == self.hub.token]
        return json_answer(
            [info_answer(repo, repo.resolve("main")) for repo in seen if author in (None, repo.name.split("/")[0])]
        )

    def _info(self, body: bytes) -> Any:
        repo = self._repo()
        return json_answer(info_answer(repo, repo.resolve(self.parts[5] if len(self.parts) > 5 else "main")))

    def _refs(self, body: bytes) -> Any:
        repo = self._repo()

        def told(kind: str, refs: dict[str, str]) -> list[dict[str, str]]:
            return [
                {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in sorted(refs.items())
            ]

        found = {"branches": told("heads", repo.branches), "tags": told("tags", repo.tags), "converts": []}
        if self.query.get("include_prs"):
            found["pullRequests"] = told("pr", repo.pulls)
        return json_answer(found)

    def _commits(self, body: bytes) -> Any:
        keys = ("oid", "title", "message", "date")
        found = [{key: getattr(item, key) for key in keys} for item in self._repo().history(self.parts[5])]
        return json_answer([{**item, "id": item["oid"], "authors": [{"user": "tester"}]} for item in found])

    def _tree(self, body: bytes) -> Any:
        commit = self._repo().resolve(self.parts[5])
        folder = "/".join(self.parts[6:])
        prefix = f"{folder}/" if folder else ""
        deep = self.query.get("recursive", "").lower() in ("true", "1")
        inside = {path: file for path, file in sorted(commit.tree.items()) if path.startswith(prefix)}
        if folder and not inside:
            raise HubError(404, f"{folder} does not exist", "EntryNotFound")
        out: dict[str, dict[str, Any]] = {}
        for path, file in inside.items():
            steps = path[len(prefix) :].split("/")
            for n in range(1, len(steps) if deep else min(2, len(steps))):
                name = prefix + "/".join(steps[:n])
                out.setdefault(name, {"type": "directory", "oid": "0" * 40, "size": 0, "path": name})
            if deep or len(steps) == 1:
                out[path] = entry_answer(path, file, commit)
        return json_answer(list(out.values()))

    def _paths_info(self, body: bytes) -> Any:
        commit = self._repo().resolve(self.parts[5])
        text = body.decode()
        paths = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
        out = [entry_answer(path, commit.tree[path], commit) for path in paths if path in commit.tree]
        for path in paths:
            if path not in commit.tree and any(name.startswith(path.rstrip("/") + "/") for name in commit.tree):
                out.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
        return json_answer(out)
