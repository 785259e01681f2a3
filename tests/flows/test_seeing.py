"""What a run tells: pings and the webhook, JSON lines, the summary, artifacts; and that none of it holds a secret."""

import json
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.week import PILOT, PLANTED_KEY, SMALL, WINDOW, Week, holding, ready_database

from flows import log
from flows.notify import ping, tell
from flows.run import Run, open_run

TOKEN = "planted-token-7d0f5e"
HUB_TOKEN = "hf_planted_9a41cc"


class Listener:
    """Remembers what it is sent; answers 200, or 500 under /broken."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, Any]] = []
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._take("GET")

            def do_POST(self) -> None:
                self._take("POST")

            def _take(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                listener.got.append((method, self.path, json.loads(body) if body else None))
                self.send_response(500 if self.path.startswith("/broken") else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.mark.slow
def test_a_run_is_seen_from_outside_and_no_secret_with_it(
    undisturbed: Week, tmp_path: Path, listener: Listener
) -> None:
    home = tmp_path / "home"
    for part in ("blobs", "cache"):
        shutil.copytree(undisturbed.home / part, home / part)
    for stage in ("collect", "ask"):
        shutil.copytree(undisturbed.home / "windows" / WINDOW / stage, home / "windows" / WINDOW / stage)
    with Week(tmp_path, overrides=SMALL) as week:
        ready_database(home, tmp_path / "cache")
        env = {
            "NEST_LOG": "json",
            "NEST__FLOWS__WEBHOOK": f"{listener.url}/hook?token={TOKEN}",
            "NEST__FLOWS__HEARTBEAT_URL": f"{listener.url}/ping/{TOKEN}",
            "HF_TOKEN": HUB_TOKEN,
        }
        done = week.nest("refresh", "--window", WINDOW, env=env)
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        known = [line for line in lines if line.get("stage") == "annotate"]
        assert known
        assert {(line["window"], line["snapshot"]) for line in known} == {(WINDOW, PILOT)}
        assert all(line["flow_run"] and line["time"].endswith("+00:00") for line in known)

        pings = [path.partition("stage=")[2] for method, path, _ in listener.got if method == "GET"]
        assert pings == [
            f"{stage}&window={WINDOW}" for stage in ("collect", "ask", "annotate", "snapshot", "push", "score")
        ]
        (told,) = [body for method, _, body in listener.got if method == "POST"]
        assert told["window"] == WINDOW
        assert told["rows"] > 3
        assert [stage["stage"] for stage in told["stages"]] == [
            "collect",
            "ask",
            "annotate",
            "snapshot",
            "push",
            "score",
        ]
        assert told["versions"]["prefect"]
        beside = home / "snapshots" / f"{PILOT}.run.json"
        assert json.loads(beside.read_text()) == told

        with sqlite3.connect(f"file:{home / 'prefect' / 'prefect.db'}?mode=ro", uri=True) as db:
            artifacts = dict(db.execute("SELECT key, type FROM artifact WHERE key IS NOT NULL"))
        db.close()
        key = PILOT.lower().replace("_", "-").replace(".", "-")
        assert artifacts[f"funnel-{key}"] == "markdown"
        assert artifacts[f"scores-{key}"] == "table"
        assert artifacts[f"masks-{WINDOW.replace('_', '-')}"] == "progress"

        week.nest("doctor", env=env, code=0)
        shown = week.nest("config", "--json", env=env)
        for secret in (PLANTED_KEY, HUB_TOKEN):
            assert secret not in done.stdout + done.stderr + shown.stdout + shown.stderr
            # store, database, logs, reports, card, predictions
            assert holding(tmp_path, secret) == []
        assert TOKEN not in done.stdout + done.stderr
        assert holding(tmp_path, TOKEN) == []
        assert "report.html" in {path.name for path in home.rglob("*.html")}
        assert list(home.rglob("README.md"))


@pytest.fixture
def run(tmp_path: Path, listener: Listener) -> Run:
    told = {"home": str(tmp_path), "flows.webhook": f"{listener.url}/broken/{TOKEN}"}
    return open_run("2026-W40", overrides={**told, "flows.heartbeat_url": f"http://127.0.0.1:9/{TOKEN}"})


def test_what_could_not_be_told_is_a_line_without_the_address(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    ping(run, "collect")
    tell(run, {"rows": 1})
    said = capsys.readouterr().err
    assert "could not be sent" in said
    assert "answered 500" in said
    assert TOKEN not in said


def test_lines_are_json_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows import console

    console.say("plain")
    monkeypatch.setenv("NEST_LOG", "json")
    with log.about(window="w", stage="ask", task=""):
        console.say('  a "quoted" line\nand one more')
        with log.about(stage="annotate"):
            console.say("inside")
        console.say("")
    console.say("after")
    plain, *rest = capsys.readouterr().err.splitlines()
    assert plain == "plain"
    told = [json.loads(line) for line in rest]
    assert [line["message"] for line in told] == ['a "quoted" line\nand one more', "inside", "after"]
    assert [line.get("stage") for line in told] == ["ask", "annotate", None]
    assert "task" not in told[0]
    assert not console.is_terminal()
