"""Large files of the loopback Hub: upload by LFS (whole or in parts), deletion for good, and download with ranges."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from support.hub_answers import json_answer
from support.hub_repos import HubError, Repo

if TYPE_CHECKING:
    from support.hub import LoopbackHub


class LargeFiles:
    """Routes of the request handler; it brings what is declared here."""

    if TYPE_CHECKING:
        command: str
        parts: list[str]
        headers: Any
        hub: LoopbackHub

        def _repo(self) -> Repo: ...

        def _write_repo(self) -> Repo: ...

        def _unknown(self, body: bytes) -> Any: ...

    # -- large files

    def _lfs_files(self, body: bytes) -> Any:
        repo = self._write_repo()
        if self.command == "POST":
            told = json.loads(body)["deletions"]
            repo.delete_large(told["sha"], rewrite=told["rewriteHistory"])
            return json_answer({})
        names = {file.lfs: path for commit in repo.commits.values() for path, file in commit.tree.items()}
        return json_answer(
            [
                {
                    "fileOid": oid,
                    "oid": oid,
                    "filename": names.get(oid, "unknown"),
                    "pushedAt": repo.created,
                    "size": len(data),
                }
                for oid, data in sorted(repo.large.items())
            ]
        )

    def _lfs_batch(self, body: bytes) -> Any:
        repo = self._write_repo()
        out = []
        for told in json.loads(body)["objects"]:
            item: dict[str, Any] = {"oid": told["oid"], "size": told["size"]}
            if told["oid"] not in repo.large:
                base = f"{self.hub.endpoint}/lfs"
                upload: dict[str, Any] = {"href": f"{base}/put/{repo.name}/{told['oid']}"}
                if told["size"] > self.hub.part_bytes:
                    count = -(-told["size"] // self.hub.part_bytes)
                    parts = {str(n): f"{base}/part/{repo.name}/{told['oid']}/{n}" for n in range(1, count + 1)}
                    upload = {"href": f"{base}/join/{repo.name}/{told['oid']}"}
                    upload["header"] = {"chunk_size": str(self.hub.part_bytes), **parts}
                item["actions"] = {"upload": upload, "verify": {"href": f"{base}/verify/{repo.name}/{told['oid']}"}}
            out.append(item)
        return json_answer({"transfer": "basic", "objects": out})

    def _lfs_route(self) -> tuple[Any, str]:
        word = self.parts[1] if len(self.parts) > 1 else ""
        return {"put": self._lfs_put, "part": self._lfs_part, "join": self._lfs_join}.get(
            word, self._unknown
        ), "lfs-upload"

    def _lfs_target(self) -> tuple[Repo, str]:
        # the address itself is the permission, as with the Hub's signed URLs
        return self.hub.repos[f"{self.parts[2]}/{self.parts[3]}"], self.parts[4]

    def _lfs_put(self, body: bytes) -> Any:
        repo, oid = self._lfs_target()
        return self._keep(repo, oid, body)

    def _lfs_part(self, body: bytes) -> Any:
        repo, oid = self._lfs_target()
        repo.blobs[f"part:{oid}:{int(self.parts[5]):05d}"] = body
        return 200, {"ETag": f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'}, b""

    def _lfs_join(self, body: bytes) -> Any:
        repo, oid = self._lfs_target()
        names = sorted(name for name in repo.blobs if name.startswith(f"part:{oid}:"))
        return self._keep(repo, oid, b"".join(repo.blobs.pop(name) for name in names))

    def _keep(self, repo: Repo, oid: str, data: bytes) -> Any:
        if hashlib.sha256(data).hexdigest() != oid:
            raise HubError(400, "sha256 mismatch")
        repo.large[oid] = data
        return 200, {}, b"OK"

    def _lfs_verify(self, body: bytes) -> Any:
        repo, oid = self._lfs_target()
        if oid not in repo.large:
            raise HubError(404, "missing")
        return 200, {}, b"OK"

    # -- download

    def _resolve(self, body: bytes) -> Any:
        repo = self._repo()
        commit = repo.resolve(self.parts[4])
        file = commit.tree.get("/".join(self.parts[5:]))
        if file is None:
            raise HubError(404, "Entry not found", "EntryNotFound")
        data = repo.content(file)
        tag = f'"{file.lfs or file.blob}"'
        headers = {"X-Repo-Commit": commit.oid, "ETag": tag, "Accept-Ranges": "bytes"}
        headers["Content-Type"] = "application/octet-stream"
        if file.lfs:
            headers |= {"X-Linked-Etag": tag, "X-Linked-Size": str(file.size)}
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range") or ""):
            first, last = int(match[1]), min(int(match[2] or len(data) - 1), len(data) - 1)
            return 206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"}, data[first : last + 1]
        return 200, {**headers, "Content-Length": str(len(data))}, data
