"""The review server: who may speak to it, what it takes, and what odd requests get."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.snapshots import CONFIG, snapshot

from engine.core.config import Config
from engine.core.errors import ConfigError, RefusedError
from engine.core.store import BlobStore, Home, locked
from engine.snapshot.manifest import read_manifest
from engine.snapshot.reviewed import draw
from engine.snapshot.verdicts import file_of, read, standing
from flows.review.rows import prepare
from flows.review.run import found, serve, take_in
from flows.review.server import ReviewServer
from flows.review.session import Session

NAME = "NEST_261123_261129"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ReviewServer]:
    folder = tmp_path / "snapshots" / NAME
    manifest = snapshot(folder, 6)
    drawn = draw(folder, manifest, random_rows=4, lowest_margins=2)
    work = tmp_path / "work"
    work.mkdir()
    rows = prepare(folder, manifest, drawn, blobs=BlobStore(tmp_path / "none"), into=work)
    session = Session(manifest, rows, file_of(tmp_path, NAME, "ada"), "ada")
    made = ReviewServer(session)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def ask(
    server: ReviewServer, path: str, *, body: Any = None, token: str | None = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    told = {key.replace("_", "-"): value for key, value in headers.items()}
    data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    connection.request(method, f"/{server.token if token is None else token}/{path}", data, told)
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    kind = answer.headers.get("Content-Type", "")
    return answer.status, json.loads(raw) if "json" in kind else raw, answer.headers


def test_the_page_and_its_parts_are_served_with_a_strict_policy(server: ReviewServer) -> None:
    for path in ("", "page.js", "page.css", "icon.svg", "picture/0/0", "mask/0/0"):
        status, data, headers = ask(server, path)
        assert status == 200, path
        assert data
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
    assert ask(server, "picture/0/0")[2]["Content-Type"] == "image/jpeg"
    assert urlsplit(server.url).hostname == "127.0.0.1"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 200),
    ],
)
def test_other_pages_of_the_browser_are_refused(server: ReviewServer, headers: dict[str, str], status: int) -> None:
    assert ask(server, "state", **headers)[0] == status
    name = server.session.rows[0].id
    said = ask(server, "verdict", body={"sample_id": name, "verdict": "right"}, **headers)
    assert said[0] == status
    assert len(list(read(server.session.path))) == (status == 200)


@pytest.mark.parametrize("token", ["", "x", "..", "%2e%2e", "state"])
def test_without_the_token_there_is_nothing(server: ReviewServer, token: str) -> None:
    assert ask(server, "state", token=token)[0] == 404
    assert (
        ask(server, "verdict", body={"sample_id": server.session.rows[0].id, "verdict": "right"}, token=token)[0] == 404
    )
    assert not server.session.path.exists()


@pytest.mark.parametrize(
    "path",
    [
        "row/6",
        "row/-1",
        "row/x",
        "row/99999999999999999999",
        "row",
        "picture/0/9",
        "picture/0/x",
        "mask/9/0",
        "../../etc/passwd",
        "row/0/0/0",
    ],
)
def test_odd_paths_are_not_found(server: ReviewServer, path: str) -> None:
    status, told, _ = ask(server, path)
    assert status == 404
    assert "error" in told


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff\xfe",
        {"sample_id": "nope", "verdict": "right"},
        {"sample_id": ["x"], "verdict": "right"},
        {"verdict": "right"},
        {"sample_id": "FIRST", "verdict": "perfect"},
        {"sample_id": "FIRST", "verdict": "undo"},
        {"sample_id": "FIRST", "verdict": "wrong_answer", "answer": "x" * 501},
        {"sample_id": "FIRST", "verdict": "wrong_answer", "answer": {"a": 1}},
        {"sample_id": "FIRST", "verdict": "wrong_answer", "answer": "Ada\nByron"},
        {"sample_id": "FIRST", "verdict": "wrong_answer", "answer": "Ada \u202enoryB"},
        {"sample_id": "FIRST", "verdict": "wrong_answer", "answer": "Ada\x9b31m"},
        {"sample_id": "FIRST", "verdict": "right", "comment": "a\x1b[2J"},
        {"sample_id": "FIRST", "verdict": "right", "comment": ["x"]},
        b"x" * 20_000,
    ],
)
def test_odd_bodies_are_refused_and_nothing_is_written(server: ReviewServer, body: Any) -> None:
    if isinstance(body, dict) and body.get("sample_id") == "FIRST":
        body = {**body, "sample_id": server.session.rows[0].id}
    status, told, _ = ask(server, "verdict", body=body)
    assert status == 400
    assert "Traceback" not in str(told)
    assert not server.session.path.exists()
    # and the server goes on
    assert ask(server, "state")[0] == 200


def test_a_session_is_taken_up_where_it_was_left(server: ReviewServer, tmp_path: Path) -> None:
    rows = server.session.rows
    assert ask(server, "verdict", body={"sample_id": rows[0].id, "verdict": "right"})[1]["at"] == 1
    wrong = {"sample_id": rows[1].id, "verdict": "wrong_answer", "answer": "  Grace   Hopper "}
    assert ask(server, "verdict", body=wrong)[1]["random"] == [2, 4]
    assert ask(server, "undo", body={})[1]["at"] == 1
    ask(server, "verdict", body=wrong)
    again = Session(server.session.manifest, rows, server.session.path, "ada")
    assert again.state()["at"] == 2
    assert again.row(1)["said_answer"] == "Grace Hopper"
    assert [v.verdict for v in read(server.session.path)] == ["right", "wrong_answer", "undo", "wrong_answer"]
    assert set(standing(read(server.session.path))) == {rows[0].id, rows[1].id}
    review = found(tmp_path, NAME)
    assert review is not None
    assert review.random.wrong == 1
    assert ask(server, "undo", body={})[0] == 200
    assert ask(server, "undo", body={})[1]["random"] == [0, 4]
    assert ask(server, "undo", body={})[1]["at"] == 0  # nothing left to take back
    assert not server.done.is_set()
    ask(server, "finish", body={})
    assert server.done.wait(5)


def test_many_words_at_once_are_all_kept(server: ReviewServer) -> None:
    names = [row.id for row in server.session.rows]
    threads = [
        threading.Thread(target=ask, args=(server, "verdict"), kwargs={"body": {"sample_id": n, "verdict": "right"}})
        for n in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {v.sample_id for v in read(server.session.path)} == set(names)


def test_addresses_only_a_taken_port_and_two_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "snapshots" / NAME
    snapshot(folder, 3, config=CONFIG.model_copy(update={"publish": "urls"}))
    home, manifest = Home(tmp_path), read_manifest(folder)
    drawn = draw(folder, manifest, random_rows=3, lowest_margins=0)
    work = tmp_path / "work"
    work.mkdir()
    gone = prepare(folder, manifest, drawn, blobs=BlobStore(tmp_path / "none"), into=work)
    assert [row.pictures for row in gone] == [(None,)] * 3
    here = prepare(folder, manifest, drawn, blobs=BlobStore(tmp_path / "snapshots" / "blobs"), into=work)
    assert all(row.pictures[0] is not None for row in here)

    def never(url: str) -> None:
        raise AssertionError(url)

    path = file_of(tmp_path, NAME, "ada")
    path.parent.mkdir(parents=True)
    with (
        locked(path.with_name(f".{path.name}.lock")),
        pytest.raises(RefusedError, match=r"ada has a review of .* --reviewer NAME"),
    ):
        serve(home, folder, manifest, Config(home=tmp_path), reviewer="ada", ready=never)
    taken = ReviewServer(Session(manifest, here, path, "ada"))
    with pytest.raises(ConfigError, match="--port"):
        serve(home, folder, manifest, Config(home=tmp_path), reviewer="ada", port=taken.server_port, ready=never)
    taken.server_close()


def test_an_answer_that_cannot_be_seen_is_not_taken_in(tmp_path: Path) -> None:
    """It would stand in the way of every later correction from the review."""
    manifest = snapshot(tmp_path / "snapshots" / NAME, 3)
    told = {"snapshot": NAME, "revision": "r1", "digest": manifest.digest, "rows": 3, "stratum": "random"}
    judged = [{"verdict": "right"}, {"verdict": "wrong_answer", "answer": "Grace\u202eHopper"}]
    theirs = tmp_path / "bea.jsonl"
    lines = [{**told, **one, "sample_id": f"{n}", "reviewer": "bea"} for n, one in enumerate(judged)]
    theirs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(ConfigError, match=r"row 1: .*U\+202E"):
        take_in(tmp_path, manifest, theirs)
    assert not file_of(tmp_path, NAME, "bea").exists()
    lines[1]["answer"] = "Grace Hopper"
    theirs.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert take_in(tmp_path, manifest, theirs) == (2, ["bea"])
