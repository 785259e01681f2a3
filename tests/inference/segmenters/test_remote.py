"""The remote protocol: client, one-file server and contract, over a real loopback server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
from support.segmenter_server import helper, running

from engine.core.config import Config, ScoreSection
from engine.core.errors import ConfigError, TerminalError, TransientError
from engine.core.protocols import EvalItem, SegmentRequest
from inference import predict
from inference.segmenters.contract import check_server, main, picture, rules
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make
from inference.segmenters.remote import Remote


def reds(model: object, image: np.ndarray, prompt: str) -> tuple[np.ndarray, str, float]:
    if "nobody" in prompt:
        raise MemoryError("CUDA out of memory, as they say")
    return image[..., 0] > image[..., 1], f"I see {prompt}", 0.75


@pytest.fixture
def url() -> Iterator[str]:
    module = helper()
    with running(module.make_server(None, reds, {"name": "reds", "version": "3"}, 0)) as address:
        yield address


def test_the_helper_keeps_the_contract(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    findings = check_server(url)
    assert [finding.rule for finding in findings] == list(rules())
    assert [finding for finding in findings if not finding.kept] == []
    assert main([url]) == 0
    assert "BROKEN" not in capsys.readouterr().out


@pytest.mark.skipif("NEST_SEGMENTER_URL" not in os.environ, reason="NEST_SEGMENTER_URL names no server to be checked")
def test_a_server_of_the_user_keeps_the_contract() -> None:
    assert [finding for finding in check_server(os.environ["NEST_SEGMENTER_URL"]) if not finding.kept] == []


async def test_masks_text_and_failures_come_through(url: str) -> None:
    runner = make(f"remote:{url}", Config(), deps=InferenceDeps())
    items = [
        EvalItem(sample_id="a", question="the red square", images=(picture(), picture(60, 80))),
        EvalItem(sample_id="b", question="nobody", images=(picture(),)),
    ]
    predictions, _ = await predict.run(items, ScoreSection(), deps=predict.PredictDeps(runner))
    first, second = predictions
    assert [rle.size for rle in first.masks if rle] == [(48, 72), (60, 80)]
    assert first.text == "I see the red square"
    assert first.models[0].name == "remote:reds"
    assert first.models[0].version == "3"
    assert second.masks == (None,)
    assert second.failures[0] is not None
    assert second.failures[0].kind == "out_of_memory"


def test_batches_are_cut_to_the_servers_size() -> None:
    module = helper()
    with running(module.make_server(None, reds, {"name": "reds", "max_batch": 2}, 0)) as address:
        results = Remote(address).segment([SegmentRequest(picture(40 + n, 72), "x") for n in range(5)])
    assert [None if r.mask is None else r.mask.shape[0] for r in results] == [40, 41, 42, 43, 44]


def scripted(answers: Callable[[str, int], tuple[int, Any]]) -> HTTPServer:
    """A server that answers as told by (path, count of requests so far)."""
    count = [0]

    class Handler(BaseHTTPRequestHandler):
        def _do(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            status, value = answers(self.path, count[0])
            count[0] += 1
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _do

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    return HTTPServer(("127.0.0.1", 0), Handler)


INFO = {"protocol": "nest-segmenter/1", "name": "odd", "prompt": "phrase", "max_batch": 4, "max_chars": 99}


@pytest.mark.parametrize(
    ("results", "kind"),
    [
        ([{"mask": None, "failure": None}], "bad_reply"),
        ([{"mask": "!!", "failure": None}], "bad_reply"),
        ([{"mask": {"size": [9, 9], "counts": "1"}, "failure": None}], "bad_reply"),
        ([{"mask": None, "failure": {"kind": "no_mask_token", "detail": "x"}}], "no_mask_token"),
        ([{"mask": None, "failure": {"kind": "lightning"}}], "error"),
        (["what"], "bad_reply"),
    ],
)
def test_bad_results_are_failures_and_never_empty_masks(results: list[Any], kind: str) -> None:
    with running(scripted(lambda path, _: (200, INFO if path == "/v1/info" else {"results": results}))) as address:
        (found,) = Remote(address).segment([SegmentRequest(picture(), "x")])
    assert found.mask is None
    assert found.failure is not None
    assert found.failure.kind == kind


def test_a_busy_server_is_asked_again_and_an_absent_one_is_transient() -> None:
    def busy(path: str, count: int) -> tuple[int, Any]:
        return (503, {"error": "loading"}) if count < 2 else (200, INFO)

    waits: list[float] = []
    with running(scripted(busy)) as address:
        assert Remote(address, sleep=waits.append).wording().form == "phrase"
    assert waits == [0.5, 1.0]
    with pytest.raises(TransientError, match="out of reach"):
        Remote(address, sleep=lambda _: None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((200, {"protocol": "other/2"}), "speaks 'other/2'"),
        ((200, b"<html>"), "not answer in JSON"),
        ((404, {"error": "no"}), "refuses the request"),
    ],
)
def test_another_service_is_a_terminal_error(answer: tuple[int, Any], told: str) -> None:
    with running(scripted(lambda *_: answer)) as address, pytest.raises(TerminalError, match=told):
        Remote(address)


def test_the_contract_finds_a_server_that_swaps_sides() -> None:
    module = helper()

    def swapped(model: object, image: np.ndarray, prompt: str) -> np.ndarray:
        return np.zeros(image.shape[1::-1], bool)

    module.answer.__globals__["Failed"] = module.Failed
    with running(module.make_server(None, swapped, {}, 0)) as address:
        (found,) = Remote(address).segment([SegmentRequest(picture(), "x")])
    assert found.failure is not None
    assert "a mask of" in found.failure.detail
    with running(scripted(lambda path, _: (200, INFO if path == "/v1/info" else {"results": []}))) as address:
        broken = {finding.rule for finding in check_server(address) if not finding.kept}
    assert "one result per item, with either a mask or a failure" in broken
    assert "what is not understood is answered 400" in broken


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "nonsense", "http://[::1"])
def test_what_is_no_address_is_a_setting_to_be_mended(url: str) -> None:
    with pytest.raises(ConfigError, match="is not an address of a server"):
        Remote(url)
