"""Calls to search services: errors told apart, keys in no message; and web detection over the same client."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest
from support.loopback import Reply, Site

from engine.core.errors import ConfigError, QuotaExhausted, TerminalError, TransientError
from engine.web.search.api import Api
from engine.web.search.vision import GoogleVision


async def test_web_detection_names_what_an_image_shows() -> None:
    answer = {
        "responses": [
            {
                "webDetection": {
                    "webEntities": [
                        {"description": "Weak", "score": 0.1},
                        {"description": "Ada Brook", "score": 0.9},
                        {"score": 3.0},
                    ],
                    "bestGuessLabels": [{"label": "tidal gate"}],
                }
            }
        ]
    }
    posted: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        posted.append(request)
        return httpx.Response(200, json=answer)

    api = Api("vision", headers={"X-Goog-Api-Key": "k"})
    api._client = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    vision = GoogleVision("k", api=api)
    named = await vision.entities(np.zeros((20, 30, 3), np.uint8))
    await vision.close()
    assert [entity.name for entity in named] == ["Ada Brook", "tidal gate"]
    assert json.loads(posted[0].content)["requests"][0]["features"] == [{"type": "WEB_DETECTION", "maxResults": 20}]


@pytest.mark.parametrize(
    ("reply", "error", "told"),
    [
        (Reply(b"{}", status=401), ConfigError, "refuses the key"),
        (Reply(b'{"error": {"message": "Quota exceeded for the day"}}', status=429), QuotaExhausted, "quota"),
        (Reply(b"{}", status=429, headers={"Retry-After": "3600"}), TransientError, "asks to wait 3600 s"),
        (Reply(b"oops", status=503), TransientError, "HTTP 503"),
        (Reply(b"{}", status=400), TerminalError, "does not understand"),
        (Reply(b"<html>", headers={"Content-Type": "text/html"}), ConfigError, "JSON format"),
        (Reply(b"[]"), TerminalError, "a list where an object belongs"),
        (Reply(reset=True), TransientError, "does not answer"),
    ],
)
async def test_errors_of_a_service_are_told_apart(reply: Reply, error: type[Exception], told: str) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with Site({"/x": reply}) as site, Api("the service", secret="THE_KEY", sleep=sleep) as api:
        with pytest.raises(error, match=told) as caught:
            await api.get(site.url("/x"), {"key": "secret-value"})
    assert "secret-value" not in str(caught.value)
    assert len(waits) in (0, 4)
