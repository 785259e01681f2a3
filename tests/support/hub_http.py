"""The HTTP side of the loopback Hub: routes and answers as the Hub gives them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

from support.hub_repos import Commit, File, HubError, Repo

if TYPE_CHECKING:
    from support.hub import Fault, LoopbackHub

LICENSES = {"cc-by-nc-4.0", "cc-by-4.0", "apache-2.0", "mit", "cc0-1.0", "other", "unknown"}
TASKS = {"visual-question-answering", "image-segmentation", "image-to-text", "question-answering"}
SIZES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr; the Hub keeps its own log."""

    @property
    def hub(self) -> LoopbackHub:
        found: LoopbackHub = self.server.hub
        return found

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        # revisions with a slash come quoted, so the path is split before it is unquoted
        self.parts = [unquote(part) for part in parts.path.split("/") if part]
        self.bearer = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        route, kind = self._route()
        self.hub.log.append(f"{self.command} {self.path} [{kind}]")
        fault = self.hub.take_fault(kind)
        if fault and not fault.after:
            self._break(fault, read=not fault.drop)
            return
        try:
            body = self._body()
        except OSError:
            self.close_connection = True
            return
        try:
            with self.hub.lock:
                status, headers, data = route(body)
        except HubError as error:
            status, headers, data = _error(error)
        if fault:
            self._break(fault, read=False)
            return
        self._answer(status, headers, data)

    def _body(self) -> bytes:
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            out = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                out += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return out
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _break(self, fault: Fault, *, read: bool) -> None:
        if fault.drop:
            if not fault.after:
                # some of the body arrives, then the line is dead
                self.rfile.read(min(1000, int(self.headers.get("content-length") or 0)))
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if read:
            self._body()
        status, headers, data = _error(HubError(fault.status, fault.message))
        self._answer(status, {**headers, **fault.headers}, data)

    def _answer(self, status: int, headers: dict[str, str], data: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    # -- routes: each takes the body and gives status, headers, data

    def _route(self) -> tuple[Any, str]:
        method, parts = self.command, self.parts
        if parts[:1] == ["api"]:
            return self._api_route(method, parts[1:])
        if parts[:1] == ["lfs"]:
            return (self._lfs_verify, "lfs-verify") if method == "POST" and parts[1] == "verify" else self._lfs_route()
        if parts[:1] == ["datasets"] and "info" in parts:
            return self._lfs_batch, "lfs-batch"
        if parts[:1] == ["datasets"] and len(parts) > 5 and parts[3] == "resolve":
            return self._resolve, "resolve"
        return self._unknown, "unknown"

    def _api_route(self, method: str, parts: list[str]) -> tuple[Any, str]:
        if parts == ["whoami-v2"]:
            return self._whoami, "whoami"
        if parts == ["validate-yaml"]:
            return self._validate, "validate"
        if parts[:1] == ["repos"] and len(parts) == 2:
            return {"create": self._create, "delete": self._delete, "move": self._move}.get(
                parts[1], self._unknown
            ), parts[1]
        if parts[:1] != ["datasets"]:
            return self._unknown, "unknown"
        if len(parts) == 1:
            return self._list, "list"
        if len(parts) == 3 or (len(parts) == 5 and parts[3] == "revision"):
            return self._info, "info"
        table = {
            "refs": self._refs,
            "commits": self._commits,
            "tree": self._tree,
            "paths-info": self._paths_info,
            "preupload": self._preupload,
            "commit": self._commit,
            "tag": self._tag,
            "branch": self._branch,
            "super-squash": self._squash,
            "lfs-files": self._lfs_files,
            "settings": lambda body: _json({}),
        }
        word = parts[3] if len(parts) > 3 else ""
        kind = {"super-squash": "squash", "lfs-files": "lfs-delete" if method == "POST" else "lfs-files"}.get(
            word, word
        )
        return table.get(word, self._unknown), kind if word in table else "unknown"

    def _repo(self) -> Repo:
        start = 2 if self.parts[0] == "api" else 1
        name = f"{self.parts[start]}/{self.parts[start + 1].removesuffix('.git')}"
        return self.hub.find(name, self.bearer)

    def _write_repo(self) -> Repo:
        repo = self._repo()
        self.hub.may_write(self.bearer)
        return repo

    def _unknown(self, body: bytes) -> Any:
        raise HubError(404, f"not on this Hub: {self.command} {self.path}")

    def _whoami(self, body: bytes) -> Any:
        if self.bearer not in (self.hub.token, self.hub.read_token):
            raise HubError(401, "Invalid credentials in Authorization header")
        return _json({"type": "user", "id": "1", "name": "tester", "fullname": "Tester", "orgs": [{"name": "news"}]})

    def _validate(self, body: bytes) -> Any:
        errors = validate_card(json.loads(body)["content"])
        return _json({"errors": [{"message": error} for error in errors], "warnings": []}, 400 if errors else 200)

    def _create(self, body: bytes) -> Any:
        self.hub.may_write(self.bearer)
        told = json.loads(body)
        name = f"{told.get('organization') or 'tester'}/{told['name']}"
        url = f"{self.hub.endpoint}/datasets/{name}"
        if name in self.hub.repos:
            raise HubError(409, "You already created this dataset repo", url=url)
        self.hub.repos[name] = Repo(name, private=told.get("visibility") == "private" or bool(told.get("private")))
        return _json({"url": url, "name": name, "id": name})

    def _delete(self, body: bytes) -> Any:
        self.hub.may_write(self.bearer)
        told = json.loads(body)
        name = f"{told.get('organization') or 'tester'}/{told['name']}"
        if self.hub.repos.pop(name, None) is None:
            raise HubError(404, "Repository not found", "RepoNotFound")
        return 200, {}, b"OK"

    def _move(self, body: bytes) -> Any:
        self.hub.may_write(self.bearer)
        told = json.loads(body)
        repo = self.hub.repos.pop(told["fromRepo"])
        repo.name = told["toRepo"]
        self.hub.repos[repo.name] = repo
        return _json({})

    def _list(self, body: bytes) -> Any:
        author = self.query.get("author")
        known = [self.hub.repos[name] for name in sorted(self.hub.repos)]
        seen = [repo for repo in known if not repo.private or self.bearer == self.hub.token]
        return _json([_info(repo, repo.resolve("main")) for repo in seen if author in (None, repo.name.split("/")[0])])

    def _info(self, body: bytes) -> Any:
        repo = self._repo()
        return _json(_info(repo, repo.resolve(self.parts[5] if len(self.parts) > 5 else "main")))

    def _refs(self, body: bytes) -> Any:
        repo = self._repo()

        def told(kind: str, refs: dict[str, str]) -> list[dict[str, str]]:
            return [
                {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": oid} for name, oid in sorted(refs.items())
            ]

        return _json({"branches": told("heads", repo.branches), "tags": told("tags", repo.tags), "converts": []})

    def _commits(self, body: bytes) -> Any:
        keys = ("oid", "title", "message", "date")
        found = [{key: getattr(item, key) for key in keys} for item in self._repo().history(self.parts[5])]
        return _json([{**item, "id": item["oid"], "authors": [{"user": "tester"}]} for item in found])

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
                out[path] = _entry(path, file, commit)
        return _json(list(out.values()))

    def _paths_info(self, body: bytes) -> Any:
        commit = self._repo().resolve(self.parts[5])
        text = body.decode()
        paths = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
        out = [_entry(path, commit.tree[path], commit) for path in paths if path in commit.tree]
        for path in paths:
            if path not in commit.tree and any(name.startswith(path.rstrip("/") + "/") for name in commit.tree):
                out.append({"type": "directory", "oid": "0" * 40, "size": 0, "path": path})
        return _json(out)

    def _preupload(self, body: bytes) -> Any:
        tree = self._write_repo().resolve(self.parts[5]).tree
        out = []
        for told in json.loads(body)["files"]:
            large = told["size"] > 10 * 2**20 or b"\0" in base64.b64decode(told["sample"])
            large |= told["path"].endswith((".parquet", ".png", ".jpg", ".bin"))
            known = tree.get(told["path"])
            out.append(
                {
                    "path": told["path"],
                    "uploadMode": "lfs" if large else "regular",
                    "shouldIgnore": False,
                    "oid": (known.lfs or known.blob) if known else None,
                }
            )
        return _json({"files": out})

    def _commit(self, body: bytes) -> Any:
        repo = self._write_repo()
        lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        head = lines[0]["value"]
        add: dict[str, bytes | str] = {}
        delete = []
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                add[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                add[value["path"]] = value["oid"]
            elif line["key"] in ("deletedFile", "deletedFolder"):
                delete.append(value["path"])
        commit = repo.commit(
            self.parts[5],
            add,
            delete=tuple(delete),
            title=head["summary"],
            message=head.get("description", ""),
            parent=head.get("parentCommit"),
        )
        url = f"{self.hub.endpoint}/datasets/{repo.name}/commit/{commit.oid}"
        return _json({"success": True, "commitOid": commit.oid, "commitUrl": url, "hookOutput": ""})

    def _tag(self, body: bytes) -> Any:
        repo = self._write_repo()
        return self._ref(repo.tags, repo, json.loads(body)["tag"] if body else self.parts[5], self.parts[5])

    def _branch(self, body: bytes) -> Any:
        repo = self._write_repo()
        start = json.loads(body).get("startingPoint", "main") if body else "main"
        return self._ref(repo.branches, repo, self.parts[5], start)

    def _ref(self, refs: dict[str, str], repo: Repo, name: str, start: str) -> Any:
        if self.command == "DELETE":
            if refs.pop(name, None) is None:
                raise HubError(404, f"Invalid rev id: {name}", "RevisionNotFound")
            return 204, {}, b""
        if name in refs:
            raise HubError(409, "Tag reference exists already" if refs is repo.tags else "Reference already exists")
        refs[name] = repo.resolve(start).oid
        return 201, {}, b""

    def _squash(self, body: bytes) -> Any:
        self._write_repo().squash(self.parts[5], json.loads(body or b"{}").get("message") or "squash")
        return 200, {}, b"OK"

    # -- large files

    def _lfs_files(self, body: bytes) -> Any:
        repo = self._write_repo()
        if self.command == "POST":
            told = json.loads(body)["deletions"]
            repo.delete_large(told["sha"], rewrite=told["rewriteHistory"])
            return _json({})
        names = {file.lfs: path for commit in repo.commits.values() for path, file in commit.tree.items()}
        return _json(
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
        return _json({"transfer": "basic", "objects": out})

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
    if found.get("license") not in LICENSES:
        errors.append(f"license {found.get('license')!r} is not known")
    errors += [f"task {task!r} is not known" for task in found.get("task_categories", []) if task not in TASKS]
    errors += [f"size {size!r} is not known" for size in found.get("size_categories", []) if size not in SIZES]
    languages = found.get("language", [])
    errors += [f"language {item!r} is not known" for item in languages if not re.fullmatch(r"[a-z]{2,3}", str(item))]
    return errors


def _json(value: object, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def _error(error: HubError) -> tuple[int, dict[str, str], bytes]:
    _, headers, data = _json({"error": error.message, **error.extra})
    headers["X-Error-Message"] = error.message
    if error.code:
        headers["X-Error-Code"] = error.code
    return error.status, headers, data


def _entry(path: str, file: File, commit: Commit) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "file", "oid": file.blob, "size": file.size, "path": path}
    out["lastCommit"] = {"id": commit.oid, "title": commit.title, "date": commit.date}
    if file.lfs:
        out["lfs"] = {"oid": file.lfs, "size": file.size, "pointerSize": 134}
    return out


def _info(repo: Repo, commit: Commit) -> dict[str, Any]:
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
