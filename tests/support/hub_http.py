"""The HTTP side of the loopback Hub: routes and answers as the Hub gives them."""

from __future__ import annotations

import base64
import json
import socket
import traceback
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from support.hub_answers import error_answer, json_answer, validate_card
from support.hub_large import LargeFiles
from support.hub_reads import Reads
from support.hub_repos import HubError, Repo

if TYPE_CHECKING:
    from support.hub import Fault, LoopbackHub


class Handler(Reads, LargeFiles, BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server: Any
    # headers and body leave in one packet: Nagle's wait for an acknowledgement costs 40 ms otherwise
    wbufsize = -1
    disable_nagle_algorithm = True

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
            status, headers, data = error_answer(error)
        except Exception as error:
            # a fault of this Hub: a status that no client tries again
            traceback.print_exc()
            status, headers, data = error_answer(HubError(418, f"{type(error).__name__}: {error}"))
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
        status, headers, data = error_answer(HubError(fault.status, fault.message))
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
            "settings": self._settings,
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
        return json_answer(
            {"type": "user", "id": "1", "name": "tester", "fullname": "Tester", "orgs": [{"name": "news"}]}
        )

    def _validate(self, body: bytes) -> Any:
        errors = validate_card(json.loads(body)["content"])
        return json_answer({"errors": [{"message": error} for error in errors], "warnings": []}, 400 if errors else 200)

    def _create(self, body: bytes) -> Any:
        self.hub.may_write(self.bearer)
        told = json.loads(body)
        name = f"{told.get('organization') or 'tester'}/{told['name']}"
        url = f"{self.hub.endpoint}/datasets/{name}"
        if name in self.hub.repos:
            raise HubError(409, "You already created this dataset repo", url=url)
        self.hub.repos[name] = Repo(name, private=told.get("visibility") == "private" or bool(told.get("private")))
        return json_answer({"url": url, "name": name, "id": name})

    def _settings(self, body: bytes) -> Any:
        repo, told = self._write_repo(), json.loads(body)
        if "private" in told or "visibility" in told:
            repo.private = bool(told.get("private")) or told.get("visibility") == "private"
        return json_answer({"private": repo.private})

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
        return json_answer({})

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
        return json_answer({"files": out})

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
        return json_answer({"success": True, "commitOid": commit.oid, "commitUrl": url, "hookOutput": ""})

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
