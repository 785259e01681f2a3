"""`nest score` with services: killed and gone on with, repeated with everything off, and its words when they fail."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.llm_server import Body, Scripted, completion
from support.searx import Searx
from support.shapes import SIDE, circle_points
from support.week import PILOT, SMALL, WINDOW, Week, digests

from flows.sample.config import sample_overrides

SEGMENTERS = ("rose:portable", "search-chat:portable", "rose-irag-tpe:llmseg")
NAMED = [word for name in SEGMENTERS for word in ("--segmenter", name)]
#: Everything that runs differ in: times, costs, locks.
OF_THE_RUN = re.compile(r"run\.json$|costs\.\w+$|\.lock$")
#: Put before everything else on the path of a process, it has no network.
NO_NETWORK = """
import socket

def refuse(self, address, *rest):
    if self.family != socket.AF_UNIX:
        raise OSError(f"the network is off, {address} was asked for")
    return true_connect(self, address, *rest)

true_connect = socket.socket.connect
socket.socket.connect = refuse
socket.socket.connect_ex = refuse
"""


def model(body: Body) -> Scripted:
    """All that is asked of models here: chat of every kind, pictures, embeddings."""
    if "input" in body:
        rows = [
            {"index": n, "embedding": [float(text.count(c)) + 1.0 for c in "aeiounrst"]}
            for n, text in enumerate(body["input"])
        ]
        return Scripted(body={"data": rows, "usage": {"prompt_tokens": 5 * len(rows)}})
    said = json.dumps(body["messages"])
    if "search query for news" in said:
        asked = re.search(r"Question: (.*?)\\n", said)
        assert asked is not None
        return completion(json.dumps({"query": " ".join(asked[1].split()[2:])}))
    if "You read one passage" in said:
        names = [name for name in ("Mara Quist", "Otto Lind") if name in said]
        answers = [{"name": name, "confidence": 0.9 - n / 5, "quote": "q"} for n, name in enumerate(names)]
        return completion(json.dumps({"answers": answers}))
    if "candidate answers" in said:
        return completion(json.dumps({"candidates": [{"name": "Mara Quist", "confidence": 0.8}]}))
    if "needs a search" in said:
        return completion(json.dumps({"needs_search": True, "reason": "news"}))
    if "can be recognised in an image" in said:
        return completion(json.dumps({"entities": [{"name": "Mara Quist", "confidence": 0.7}]}))
    if "Give the bounding box" in said:
        return completion('[{"bbox_2d": [200, 200, 800, 800]}]')
    if "trace outlines" in said or "correct outlines" in said:
        points = (circle_points(80, 12) / SIDE * 1000).clip(0, 1000).tolist()
        told = {"done": True} if "correct outlines" in said else {}
        return completion(json.dumps({**told, "outlines": [{"points": points, "corners": [], "hole": False}]}))
    return completion("Mara Quist")


def settings(searx: Searx) -> dict[str, object]:
    hosts = sample_overrides(1)["collect"]["allow_hosts"]
    return {
        **SMALL,
        "collect.allow_hosts": [*hosts, searx.netloc],
        "llm.sees_images": True,
        "llm.max_in_flight": 8,
        "rose.search": ["searxng"],
        "rose.searxng_url": searx.url,
        "rose.answerer": "llm",
        "rose.embedder": "openai",
        "rose.embed_model": "embed-1",
        "rose.image_entities": "vision-model",
        "score.shard_samples": 2,
        "score.options": {"search-chat": {"model": "searcher"}, "llmseg": {"model": "tracer", "passes": 1}},
    }


@pytest.fixture
def searx() -> Iterator[Searx]:
    with Searx() as running:
        yield running


def home_of(undisturbed: Week, folder: Path) -> None:
    """The finished week without what it was fetched with."""
    for part in ("blobs", "windows", "snapshots"):
        shutil.copytree(undisturbed.home / part, folder / "home" / part)


def made(week: Week) -> dict[str, str]:
    """Digests of all predictions and reports but what belongs to the run."""
    found = {**digests(week.home / "predictions"), **{f"r/{k}": v for k, v in digests(week.home / "reports").items()}}
    return {name: value for name, value in found.items() if not OF_THE_RUN.search(name)}


def forget(week: Week) -> None:
    for part in ("predictions", "reports"):
        shutil.rmtree(week.home / part)


@pytest.fixture
def evaluated(undisturbed: Week, tmp_path: Path, searx: Searx) -> Iterator[tuple[Week, dict[str, str]]]:
    """A finished evaluation and its bytes."""
    home_of(undisturbed, tmp_path)
    with Week(tmp_path, overrides=settings(searx)) as week:
        week.llm.reply = model
        told = week.nest("score", PILOT, *NAMED)
        assert "Seconds and cost per module and sample" in told.stderr
        yield week, made(week)


@pytest.mark.slow
def test_a_finished_evaluation_is_repeated_with_everything_off(
    evaluated: tuple[Week, dict[str, str]], searx: Searx, tmp_path: Path
) -> None:
    week, first = evaluated
    answered, searched = week.llm.answered, sum(searx.queries.values())
    assert answered > 20
    assert searched > 3
    assert any("published/predictions" in name for name in first)
    assert any(name.endswith("report.html") for name in first)
    (report,) = (
        path.parent for path in (week.home / "reports").rglob("report.json") if path.parent.name != "published"
    )
    costs = json.loads((report / "costs.json").read_text())
    told = {(row["segmenter"], row["module"]): row for row in costs}
    assert {"websense", "irag", "tpe", "segmenter", "vpe", "all"} == {m for s, m in told if s == "rose:portable"}
    assert told["rose:portable", "irag"]["tokens_in"] > 0
    assert told["search-chat:portable", "search_chat"]["tokens_out"] > 0
    assert "costs.html" in (report / "report.html").read_text()
    # the other model that was named was asked, not the ordinary one
    assert {body["model"] for body in week.llm.bodies} == {"test-model", "searcher", "tracer", "embed-1"}
    forget(week)
    (tmp_path / "off").mkdir()
    (tmp_path / "off" / "sitecustomize.py").write_text(NO_NETWORK)
    path = os.pathsep.join([str(tmp_path / "off"), week.env()["PYTHONPATH"]])
    week.llm.__exit__(None, None, None)
    searx.__exit__()
    week.nest("score", PILOT, *NAMED, "--offline", env={"PYTHONPATH": path, "OPENAI_API_KEY": ""})
    assert made(week) == first
    assert (week.llm.answered, sum(searx.queries.values())) == (answered, searched)
    # what was never asked is an error that can be mended by going online, and never an empty answer
    shutil.rmtree(week.home / "cache" / "search")
    forget(week)
    missing = week.nest("score", PILOT, *NAMED, "--offline", env={"PYTHONPATH": path, "OPENAI_API_KEY": ""}, code=3)
    assert "offline, and searxng was never asked" in missing.stderr


@pytest.mark.slow
def test_killed_halfway_nothing_is_asked_twice(undisturbed: Week, tmp_path: Path) -> None:
    with Searx(late_s=0.3) as searx:
        for name in ("whole", "killed"):
            home_of(undisturbed, tmp_path / name)
        with Week(tmp_path / "whole", overrides=settings(searx)) as whole:
            whole.llm.reply = model
            whole.nest("score", PILOT, *NAMED)
            want, total = made(whole), sum(searx.queries.values())
        searx.queries.clear()
        with Week(tmp_path / "killed", overrides={**settings(searx), "llm.max_in_flight": 1}) as week:
            week.llm.reply = model
            week.llm.latency_s = 0.02
            words = ("score", PILOT, *NAMED)
            assert week.kill_when(words, lambda: sum(searx.queries.values()) >= total // 2)
            recorded = {path.stem for path in (week.home / "cache" / "search").rglob("*.json")}
            assert recorded
            week.nest(*words)
            assert made(week) == want
            # a search that left less than the grace before the kill may not have been kept
            assert sum(searx.queries.values()) - total <= 2
            assert week.paid_twice() == []


@pytest.mark.slow
def test_a_service_that_stays_away_leaves_work_and_says_what_to_do(
    undisturbed: Week, tmp_path: Path, searx: Searx
) -> None:
    home_of(undisturbed, tmp_path)
    with Week(tmp_path, overrides=settings(searx)) as week:
        week.llm.reply = model
        searx.status = 503
        told = week.nest("score", PILOT, "--segmenter", "rose:portable", code=3)
        assert "SearXNG does not answer (HTTP 503): run again later; what is done is kept" in told.stderr
        searx.status = 403
        told = week.nest("score", PILOT, "--segmenter", "rose:portable", code=2)
        assert "SearXNG refuses the key (HTTP 403)" in told.stderr
        searx.status = 200
        week.nest("score", PILOT, "--segmenter", "rose:portable")


@pytest.mark.slow
def test_a_rows_own_article_reaches_no_prompt_of_it(undisturbed: Week, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    home_of(undisturbed, tmp_path)
    with Week(tmp_path, overrides={**SMALL, "rose.websense": False}) as week:
        week.nest("score", WINDOW, "--segmenter", "rose:portable")
    (path,) = (week.home / "snapshots" / PILOT / "provenance").glob("*.parquet")
    own = {row["id"]: row["article_url"] for row in pq.read_table(path, columns=["id", "article_url"]).to_pylist()}
    (part,) = (week.home / "predictions" / PILOT / "rose+portable").glob("*/part-*.jsonl")
    found = [json.loads(line) for line in part.read_text().splitlines()]
    assert {one["sample_id"] for one in found} == set(own)
    pages = {one["sample_id"]: " ".join(s["values"].get("pages", "") for s in one["trace"]) for one in found}
    assert any(pages.values())
    for one in found:
        assert own[one["sample_id"]] not in json.dumps(one["trace"])
    # its article is in the index, and other rows are shown it
    assert any(
        url in pages[other] for name, url in own.items() for other in pages if own[other] != url and name != other
    )


def test_mistakes_in_names_are_sentences(undisturbed: Week) -> None:
    for words, said in (
        (("--segmenter", "portable:x"), "'portable' takes nothing after a colon"),
        (("--ablation", "rose:portable"), "an ablation is of a bare segmenter"),
        (("--ablation", ""), "an ablation is of a bare segmenter"),
        (("--ablation", "portabel"), "did you mean 'portable'"),
        (("--segmenter", "seem"), "set [score] endpoints.seem"),
        (("--segmenter", "search-chat:portable"), "set [score] options.search-chat.model"),
    ):
        assert said in undisturbed.nest("score", PILOT, *words, code=2).stderr
