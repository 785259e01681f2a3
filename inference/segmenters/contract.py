"""Does a server keep the `nest-segmenter/1` protocol? `python -m inference.segmenters.contract URL` says so.

Each rule is tried against the running server with pictures made here; what a good mask is, only scores can say.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import numpy as np

from engine.core.errors import NestError
from engine.core.geometry import Image
from engine.core.images import encode_jpeg, encode_png
from engine.core.protocols import SegmentRequest
from inference.segmenters.remote import PROTOCOL, Remote


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule, whether the server keeps it, and what it did instead."""

    rule: str
    kept: bool
    detail: str = ""


def picture(height: int = 48, width: int = 72) -> Image:
    """A grey picture with a red square: not square itself, so that swapped sides show."""
    pixels = np.full((height, width, 3), 128, np.uint8)
    pixels[12:36, 40:64] = (220, 20, 20)
    return pixels


def check_server(url: str, *, timeout_s: float = 120.0) -> list[Finding]:
    """All rules in order; later ones are left out when the server is not there at all."""
    base = url.rstrip("/")
    found: list[Finding] = []
    with httpx.Client(timeout=timeout_s, trust_env=False) as client:
        for rule, check in _RULES:
            try:
                wrong = check(client, base)
            except (httpx.HTTPError, NestError, ValueError, KeyError, TypeError) as error:
                wrong = f"{type(error).__name__}: {error}"
            found.append(Finding(rule, not wrong, wrong))
            if wrong and rule == _RULES[0][0]:
                break
    return found


def main(arguments: list[str] | None = None) -> int:
    """Print the findings; exit code 0 if all rules are kept, else 1."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        sys.stderr.write("usage: python -m inference.segmenters.contract URL\n")
        return 2
    findings = check_server(given[0])
    for finding in findings:
        mark = "kept  " if finding.kept else "BROKEN"
        sys.stdout.write(f"{mark} {finding.rule}{': ' + finding.detail if finding.detail else ''}\n")
    return 0 if all(finding.kept for finding in findings) else 1


def _item(image: bytes, prompt: str = "the red square") -> dict[str, str]:
    return {"image": base64.b64encode(image).decode("ascii"), "prompt": prompt}


def _info(client: httpx.Client, base: str) -> str:
    info = client.get(base + "/v1/info").json()
    missing = [key for key in ("protocol", "name", "prompt") if not info.get(key)]
    if missing:
        return f"it lacks {', '.join(missing)}"
    return "" if info["protocol"] == PROTOCOL else f"it says {info['protocol']!r}"


def _one_each(client: httpx.Client, base: str) -> str:
    size = int(client.get(base + "/v1/info").json().get("max_batch", 1))
    items = [_item(encode_png(picture(48 + 2 * n, 72))) for n in range(min(size, 3))]
    results = client.post(base + "/v1/segment", json={"items": items}).json()["results"]
    if len(results) != len(items):
        return f"{len(results)} results for {len(items)} items"
    both = [n for n, r in enumerate(results) if (r.get("mask") is None) == (r.get("failure") is None)]
    return f"results {both} have neither or both of mask and failure" if both else ""


def _sizes(client: httpx.Client, base: str) -> str:
    remote = Remote(base, client=client)
    image = picture(50, 90)
    (result,) = remote.segment([SegmentRequest(image=image, prompt="the red square")])
    if result.failure is not None:
        return "" if result.failure.kind != "bad_reply" else result.failure.detail
    return ""


def _jpeg(client: httpx.Client, base: str) -> str:
    body = {"items": [_item(encode_jpeg(picture()))]}
    (result,) = client.post(base + "/v1/segment", json=body).json()["results"]
    return "" if result.get("mask") or result.get("failure") else "nothing came back"


def _broken_image(client: httpx.Client, base: str) -> str:
    body = {"items": [_item(b"not an image")]}
    answer = client.post(base + "/v1/segment", json=body)
    if answer.status_code != 200:
        return f"the whole request fails with {answer.status_code}"
    (result,) = answer.json()["results"]
    return "" if result.get("mask") is None and result.get("failure") else "a mask came back for what is no image"


def _not_understood(client: httpx.Client, base: str) -> str:
    codes = [
        client.post(base + "/v1/segment", content=body, headers={"Content-Type": "application/json"}).status_code
        for body in (b"{", b"[]", b'{"items": 3}', b'{"items": [{"prompt": "x"}]}')
    ]
    return "" if all(code == 400 for code in codes) else f"the answers are {codes}"


def _same_again(client: httpx.Client, base: str) -> str:
    body = {"items": [_item(encode_png(picture()))]}
    first, second = (client.post(base + "/v1/segment", json=body).json()["results"] for _ in range(2))
    return "" if first == second else "the same request gave two results"


_RULES: tuple[tuple[str, Callable[[httpx.Client, str], str]], ...] = (
    ("GET /v1/info names protocol, model and form of prompt", _info),
    ("one result per item, with either a mask or a failure", _one_each),
    ("a mask has its image's height and width", _sizes),
    ("JPEG is taken as well as PNG", _jpeg),
    ("a broken image is that item's failure", _broken_image),
    ("what is not understood is answered 400", _not_understood),
    ("the same request gives the same result", _same_again),
)


def rules() -> Iterator[str]:
    """The rules in words."""
    return (rule for rule, _ in _RULES)


if __name__ == "__main__":
    sys.exit(main())
