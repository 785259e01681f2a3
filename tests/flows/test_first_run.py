"""The first morning: from an empty folder to a pilot of twenty items in at most five commands, and what keys may do."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.llm_server import LlmServer

from engine.core.config import Config, load_config
from flows.doctor import keys as doctor_keys
from flows.first import with_sources
from flows.run import open_run
from flows.sample.articles import SITES
from flows.sample.config import LABEL
from flows.sample.server import SamplePublishers

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-first-morning"


def _nest(folder: Path, *words: str, env: dict[str, str], code: int = 0) -> "subprocess.CompletedProcess[str]":
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "OPENAI", "HF_", "PREFECT"))}
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words],
        cwd=folder,
        env={**clean, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.slow
def test_from_an_empty_folder_to_a_pilot_of_twenty_in_five_commands(tmp_path: Path) -> None:
    """What the README says, against publishers and a model endpoint on loopback; only the environment is prepared."""
    with SamplePublishers() as publishers, LlmServer(key=KEY) as llm:
        hosts = [site.host for site in SITES.values()]
        env = {
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": llm.url,
            "NEST__COLLECT__RESOLVE": json.dumps(dict.fromkeys(hosts, f"127.0.0.1:{publishers.port}")),
            "NEST__COLLECT__ALLOW_HOSTS": json.dumps(hosts),
            "NEST__COLLECT__PER_HOST_DELAY_S": "0",
            "NEST__LLM__MODEL": "test-model",
            "NEST__LLM__PRICES": '{"test-model": [0.4, 1.6]}',
            # no card and no weights here
            "NEST__ANNOTATE__DETECTOR": "portable",
            "NEST__ANNOTATE__MASK_MODEL": "portable",
            "NEST__SCORE__SEGMENTERS": '["portable"]',
        }
        sources = [word for site in SITES.values() for word in ("--source", f"{site.base}{site.list_path}")]
        commands: list[tuple[str, ...]] = [
            ("init", *sources),
            ("doctor",),
            ("refresh", "--window", LABEL, "--limit", "20"),
        ]
        assert len(commands) <= 5
        begun = _nest(tmp_path, *commands[0], env=env)
        assert begun.stderr.count(" good ") == 3
        assert [row.type for row in load_config(tmp_path / "nest.toml", environ={}).source].count("sitemap") == 1
        checked = _nest(tmp_path, *commands[1], env=env, code=0)
        assert "answers" in checked.stdout
        told = _nest(tmp_path, *commands[2], env=env)
    assert "left out, by reason" in told.stderr
    assert f"NEST_{LABEL}.pilot20" in told.stderr
    week = re.search(r"estimate  a whole week has (\d+) links: about (\d+) rows, \$0\.\d\d and", told.stderr)
    assert week is not None
    assert int(week[1]) > 20
    assert "if the rest is like these 20" in told.stderr
    assert f"next: nest refresh --window {LABEL}" in told.stderr
    snapshot = json.loads(
        (tmp_path / "nest-data" / "snapshots" / f"NEST_{LABEL}.pilot20" / "snapshot.json").read_text()
    )
    assert snapshot["rows"] > 0
    assert (tmp_path / "nest-data" / "ledger").is_dir()
    screen = _nest(tmp_path, "status", env=env).stdout
    assert re.search(r" pilot20 +\d{4}-\d\d-\d\d$", screen.splitlines()[0])
    assert "run.json" not in screen
    assert json.loads(_nest(tmp_path, "status", "--json", env=env).stdout)["counts"]["rows"] == snapshot["rows"]
    whole = _nest(tmp_path, "status", "--window", LABEL, env=env).stdout
    assert f"there is a pilot: nest status --window {LABEL} --limit 20" in whole
    detail = _nest(tmp_path, "status", "--window", LABEL, "--limit", "20", env=env).stdout
    assert f"snapshot   {snapshot['rows']} " in detail
    other = _nest(tmp_path, "status", "--window", LABEL, "--limit", "5", env=env).stderr
    assert f"next: nest refresh --window {LABEL} --limit 5" in other
    # the pilot's report is found by its name, and nothing is scored twice
    page = re.search(r"report +(\S+\.pilot20/\S+)", told.stderr)
    assert page is not None
    assert Path(page[1]).parent.name in _nest(tmp_path, "report", f"{LABEL}.pilot20", env=env).stderr
    assert "nothing to do" in _nest(tmp_path, "score", f"{LABEL}.pilot20", env=env).stderr
    assert "no snapshot of" in _nest(tmp_path, "report", f"{LABEL}.pilot21", env=env, code=2).stderr
    for wrong in ("pilot0", "pilot", "pilot020", "pilotx"):
        _nest(tmp_path, "report", f"{LABEL}.{wrong}", env=env, code=2)
    # and it passes nowhere for the week
    pushed = _nest(tmp_path, "push", f"{LABEL}.pilot20", "--repo", "me/x", "--allow-portable", env=env, code=4)
    assert "never pushed" in pushed.stderr
    assert "a part of" in _nest(tmp_path, "cite", f"{LABEL}.pilot20", env=env, code=4).stderr
    string = json.loads((Path(page[1]).parent / "report.json").read_text())["score_string"]
    assert f"data=NEST_{LABEL}.pilot20@r1" in string
    assert "left out, by reason" in detail
    assert len(screen.splitlines()) == 24


def test_init_leaves_out_what_is_no_source_and_says_so(tmp_path: Path) -> None:
    with SamplePublishers() as publishers:
        site = next(iter(SITES.values()))
        env = {
            "NEST__COLLECT__RESOLVE": json.dumps({site.host: f"127.0.0.1:{publishers.port}"}),
            "NEST__COLLECT__ALLOW_HOSTS": json.dumps([site.host]),
        }
        good, bad = f"{site.base}{site.list_path}", f"{site.base}/no-such-feed.xml"
        done = _nest(tmp_path, "init", "--source", good, "--source", bad, env=env)
        assert "left out" in done.stderr
        config = load_config(tmp_path / "nest.toml", environ={})
        assert [row.url for row in config.source] == [good]
        (tmp_path / "nest.toml").unlink()
        assert "--allow-host" in _nest(tmp_path, "init", "--source", bad, env=env, code=2).stderr
        _nest(tmp_path, "init", "--source", "not an address", env=env, code=2)
        assert list(tmp_path.iterdir()) == []
    # without a network the starters are written all the same
    done = _nest(tmp_path, "init", env={})
    assert "nest sources check" in done.stderr
    assert len(load_config(tmp_path / "nest.toml", environ={}).source) == 4


def test_a_host_of_ones_own_and_a_machine_without_a_gpu_are_options(tmp_path: Path) -> None:
    with SamplePublishers() as publishers:
        site = next(iter(SITES.values()))
        env = {"NEST__COLLECT__RESOLVE": json.dumps({site.host: f"127.0.0.1:{publishers.port}"})}
        source = ("init", "--source", f"{site.base}{site.list_path}")
        refused = _nest(tmp_path, *source, env=env, code=2)
        assert "private address" in refused.stderr
        assert "--allow-host" in refused.stderr
        _nest(tmp_path, *source, "--allow-host", site.host, "--portable", env=env)
    config = load_config(tmp_path / "nest.toml", environ={})
    assert config.collect.allow_hosts == (site.host,)
    assert (config.annotate.detector, config.annotate.mask_model) == ("portable", "portable")
    assert (config.score.segmenters, config.score.anchors) == (("portable",), ("portable",))


def test_a_pilot_without_a_window_takes_the_days_that_feeds_still_show(tmp_path: Path) -> None:
    (tmp_path / "nest.toml").write_text("")
    now = datetime(2026, 11, 30, 9, tzinfo=UTC)
    path = tmp_path / "nest.toml"
    assert open_run(None, config_path=path, overrides={"collect.limit": 20}, now=now).window.label == "261123_261129"
    assert open_run(None, config_path=path, now=now).window.label == "261116_261122"


def test_names_of_sources_are_unique_and_the_rest_of_the_file_stays(tmp_path: Path) -> None:
    from engine.core.config import SourceSection
    from flows.first import _names, starter_text

    urls = ["https://www.herald.example/rss", "https://feeds.herald.example/a", "https://x.co.uk/b"]
    assert _names(urls) == ["herald", "herald-2", "x-co"]
    assert _names(["http://127.0.0.1:8000/rss", "http://127.0.0.2/rss"]) == ["127-0-0-1", "127-0-0-2"]
    rows = [SourceSection(name='a "b"', url="https://x.example/?a=1&b=%22")]
    (tmp_path / "nest.toml").write_text(with_sources(starter_text(), rows))
    config = load_config(tmp_path / "nest.toml", environ={})
    assert config.source == tuple(rows)
    assert config.llm.model
    assert config.snapshot.license


class _Accounts(BaseHTTPRequestHandler):
    """An endpoint and a Hub that answer from a table: path to status and object."""

    answers: dict[str, tuple[int, Any]]
    seen: list[str | None]

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        status, told = self.answers.get(self.path, (404, {}))
        data = json.dumps(told).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", str(told))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def accounts() -> Iterator[tuple[str, type[_Accounts]]]:
    handler = type("Handler", (_Accounts,), {"answers": {}, "seen": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


def _words(found: Iterator[Any]) -> list[str]:
    return [f"{one.state}: {one.what} {one.mend}" for one in found]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ((200, {"data": [{"id": "gpt-test-1"}]}), "good: 127.0.0.1 serves gpt-test-1 to this key"),
        ((200, {"data": [{"id": "gpt-test-2"}]}), "bad: 127.0.0.1 does not serve gpt-test-1"),
        ((401, {}), "bad: 127.0.0.1 does not know the key"),
        ((403, {}), "warn: the key may not list the models"),
        ((404, {}), "warn: 127.0.0.1 does not list its models"),
        ((200, ["odd"]), "warn: 127.0.0.1 lists no models"),
        ((302, "http://127.0.0.1:9/steal"), "warn: 127.0.0.1 does not list its models (status 302)"),
    ],
)
def test_the_model_is_tried(
    accounts: tuple[str, type[_Accounts]], monkeypatch: pytest.MonkeyPatch, models: tuple[int, Any], said: str
) -> None:
    base, handler = accounts
    handler.answers["/v1/models"] = models
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    config = Config.model_validate({"llm": {"model": "gpt-test-1"}})
    found = _words(doctor_keys.model_access(config, f"{base}/v1"))
    assert any(line.startswith(said) for line in found), found
    assert not [line for line in found if KEY in line]
    assert set(handler.seen) == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("path", "told", "said"),
    [
        ("/v1/key", {"data": {"limit_remaining": 12.5}}, "good: $12.50 are left"),
        ("/v1/key", {"data": {"limit_remaining": None}}, "good: the balance cannot be asked"),
        ("/user/balance", {"balance_infos": [{"currency": "USD", "total_balance": "0.40"}]}, "warn: $0.40 are left"),
        ("/user/balance", {"balance_infos": [{"currency": "USD", "total_balance": "0"}]}, "bad: $0.00 are left"),
        ("/user/balance", {"balance_infos": [{"currency": "USD", "total_balance": "x"}]}, "good: the balance cannot"),
        ("/none", {}, "good: the balance cannot be asked"),
    ],
)
def test_the_balance_is_asked_where_it_is_told(
    accounts: tuple[str, type[_Accounts]], monkeypatch: pytest.MonkeyPatch, path: str, told: Any, said: str
) -> None:
    base, handler = accounts
    handler.answers |= {"/v1/models": (200, {"data": [{"id": "m"}]}), path: (200, told)}
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = _words(doctor_keys.model_access(Config.model_validate({"llm": {"model": "m"}}), f"{base}/v1"))
    assert any(line.startswith(said) for line in found), found


def _who(role: str | None, scoped: list[Any] | None = None) -> tuple[int, Any]:
    access = {"role": role, "fineGrained": {"scoped": scoped or []}}
    return 200, {"name": "ada", "orgs": [{"name": "news"}], "auth": {"accessToken": access} if role else {}}


@pytest.mark.parametrize(
    ("who", "said"),
    [
        (_who("write"), "good: the token of ada may write to news"),
        (_who("read"), "bad: the token of ada may only read"),
        (_who("fineGrained"), "bad: the token may not write to repositories of news"),
        (
            _who("fineGrained", [{"entity": {"name": "news"}, "permissions": ["repo.write"]}]),
            "good: the token of ada may",
        ),
        (_who("fineGrained", [{"entity": {"name": "x"}, "permissions": ["repo.write"]}]), "bad: the token may not"),
        (_who(None), "good: the Hub knows the token of ada; what it may do is not told"),
        ((200, {"name": "bo", "orgs": []}), "bad: the token is of bo, which is not in 'news'"),
        ((401, {}), "bad: 127.0.0.1 does not know the token"),
        ((500, {}), "warn: 127.0.0.1 answers with status 500"),
    ],
)
def test_the_hubs_token_is_tried(
    accounts: tuple[str, type[_Accounts]], monkeypatch: pytest.MonkeyPatch, who: tuple[int, Any], said: str
) -> None:
    base, handler = accounts
    handler.answers["/api/whoami-v2"] = who
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("HF_ENDPOINT", base)
    found = _words(doctor_keys.hub_access(Config.model_validate({"hub": {"repo": "news/{name}"}})))
    assert any(line.startswith(said) for line in found), found
    assert "hf_secret" not in "".join(found)


def test_expired_keys_are_told() -> None:
    config = Config.model_validate(
        {"credentials": {"expires": {"A": "2026-11-20", "B": "2026-12-05", "C": "2027-06-01"}}}
    )
    found = _words(doctor_keys.expiries(config, today=date(2026, 11, 30)))
    assert [line.split(" (")[0] for line in found] == ["bad: A expired 10 days ago", "warn: B expires in 5 days"]
