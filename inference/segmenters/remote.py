"""Any model behind the small HTTP protocol `nest-segmenter/1`: the `Segmenter` called `remote:URL`.

The protocol is described in docker/segmenter/serve.py, which is also a server for it. Images go as PNG, so that the
model sees the same pixels. A server that is away or busy is waited for and then a `TransientError`; one that breaks the
protocol is a `TerminalError`; what goes wrong with one image comes back as its failure.

With `records` every answer is written down by picture, prompt and the server's own name and version, so that a run is
repeated `offline` without the server. Masks that a server has made before are not asked for again if it names a version
or the digest of its weights; of one that names neither nobody knows whether it is still the same.
"""

from __future__ import annotations

import base64
import json
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

import httpx

from engine.core.errors import ConfigError, TerminalError, TransientError
from engine.core.geometry import Mask
from engine.core.images import encode_png
from engine.core.masks import decode_rle
from engine.core.protocols import SegmentRequest, SegmentResult
from engine.core.schema import Failure, FailureKind, ModelRef, Rle, canonical_json
from engine.core.store import sha256_bytes
from engine.web.search.record import Records
from inference.benchmarks.mask_files import read_mask
from inference.segmenters.base import Wording

PROTOCOL = "nest-segmenter/1"
#: Answers after which the same request is sent again.
_AGAIN = frozenset({429, 502, 503, 504})
_WAITS_S = (0.5, 1.0, 2.0, 4.0)


class Remote:
    """A segmenter that is a server. Asks it who it is once, at the start.

    `timeout_s` is for one batch: a batch that takes longer is tried image by image, and an image that does is a failure
    of kind `timeout`.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 120.0,
        client: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
        records: Records | None = None,
        offline: bool = False,
    ) -> None:
        self.url = url.rstrip("/")
        self._client = client if client is not None else httpx.Client(timeout=timeout_s, trust_env=False)
        # a segmenter has no end of its own: its connections go when it does
        self._finalizer = weakref.finalize(self, self._client.close) if client is None else None
        self._sleep = sleep
        self._records = records
        self._offline = offline
        info = self._who()
        if info.get("protocol") != PROTOCOL:
            raise TerminalError(f"{self.url} speaks {info.get('protocol')!r}, this program speaks '{PROTOCOL}'")
        self.name = f"remote:{info.get('name', 'model')}"
        self._version = str(info.get("version", ""))
        self._weights = str(info.get("weights_sha256", ""))
        self._phrase = info.get("prompt") == "phrase"
        self._max_chars = _number(info.get("max_chars"), 600)
        self._max_batch = max(1, _number(info.get("max_batch"), 1))

    def models(self) -> tuple[ModelRef, ...]:
        return (ModelRef(role="segmenter", name=self.name, version=self._version, weights_sha256=self._weights),)

    def wording(self) -> Wording:
        """How the server says it wants to be asked."""
        return Wording(form="phrase" if self._phrase else "sentence", max_chars=self._max_chars)

    def segment(self, requests: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """One result per request, in batches of at most the server's own size."""
        results: list[SegmentResult] = []
        for start in range(0, len(requests), self._max_batch):
            results += self._batch(requests[start : start + self._max_batch])
        return results

    def _who(self) -> dict[str, Any]:
        asked = {"kind": "segmenter", "url": self.url}
        if self._offline:
            told = self._records.read(_digest(asked)) if self._records is not None else None
            if not isinstance(told, dict):
                raise TransientError(f"offline, and the segmenter at {self.url} was never asked: go online once")
            return told
        info = self._call("GET", "/v1/info")
        if self._records is not None:
            self._records.write(_digest(asked), asked, info)
        return info

    def _batch(self, part: Sequence[SegmentRequest]) -> list[SegmentResult]:
        """Recorded answers where they count, the server's for the rest."""
        asked = [self._asked(request) for request in part]
        kept = [self._recorded(told) for told in asked]
        lacking = [place for place, found in enumerate(kept) if found is None]
        if lacking and self._offline:
            raise TransientError(
                f"offline, and {self.name} was never asked '{part[lacking[0]].prompt}': go online once"
            )
        for place, found in zip(lacking, self._fetch([part[place] for place in lacking]), strict=True):
            kept[place] = found
            if self._records is not None:
                self._records.write(_digest(asked[place]), asked[place], found)
        return [_result(found, request) for found, request in zip(kept, part, strict=True)]

    def _asked(self, request: SegmentRequest) -> dict[str, Any]:
        """What an answer is known by."""
        if self._records is None:
            return {}
        pixels = sha256_bytes(str(request.image.shape).encode() + request.image.tobytes())
        who = [self.name, self._version, self._weights]
        return {"kind": "mask", "segmenter": who, "prompt": request.prompt, "image": pixels}

    def _recorded(self, asked: Mapping[str, Any]) -> Any:
        if self._records is None or not (self._offline or self._version or self._weights):
            return None
        found = self._records.read(_digest(asked))
        # a failure may pass; offline it is what the run had
        return found if self._offline or (isinstance(found, dict) and found.get("failure") is None) else None

    def _fetch(self, part: Sequence[SegmentRequest]) -> list[Any]:
        """The server's entries for these requests, as they came."""
        if not part:
            return []
        items = [
            {"image": base64.b64encode(encode_png(request.image)).decode("ascii"), "prompt": request.prompt}
            for request in part
        ]
        try:
            reply = self._call("POST", "/v1/segment", {"items": items})
        except httpx.ReadTimeout:
            if len(part) > 1:
                return [entry for request in part for entry in self._fetch([request])]
            return [{"failure": {"kind": "timeout", "detail": "the server did not answer in time"}}]
        results = reply.get("results")
        if not isinstance(results, list) or len(results) != len(part):
            count = len(results) if isinstance(results, list) else "no"
            raise TerminalError(f"{self.url} gave {count} results for {len(part)} images")
        return results

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A decoded answer. Raises `TransientError`, `TerminalError`, or httpx's `ReadTimeout`."""
        said = ""
        for wait in (*_WAITS_S, None):
            try:
                answer = self._client.request(method, self.url + path, json=body)
            except httpx.ReadTimeout:
                if method == "GET":
                    raise TransientError(f"{self.url} does not answer: start the segmenter's server") from None
                raise
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ConfigError(
                    f"'{self.url}' is not an address of a server: it must begin with http(s)://"
                ) from error
            except httpx.TransportError as error:
                said = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code == 200:
                    return _decoded(answer, self.url)
                said = f"it answers {answer.status_code}: {answer.text[:200]}"
                if answer.status_code not in _AGAIN:
                    raise TerminalError(f"{self.url}{path} refuses the request: {said}")
            if wait is not None:
                self._sleep(wait)
        raise TransientError(f"{self.url} is out of reach ({said}): start the segmenter's server, then run again")


def _digest(asked: Mapping[str, Any]) -> str:
    return sha256_bytes(canonical_json({"protocol": PROTOCOL, **asked}).encode("utf-8", "surrogatepass"))


def _decoded(answer: httpx.Response, url: str) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError as error:
        raise TerminalError(f"{url} does not answer in JSON: {error}") from error
    if not isinstance(found, dict):
        raise TerminalError(f"{url} answers with a {type(found).__name__} where an object belongs")
    return found


def _result(found: Any, request: SegmentRequest) -> SegmentResult:
    """One entry of an answer; one that keeps the contract badly is a failure of kind `bad_reply`."""
    if not isinstance(found, dict):
        return _bad("the result is not an object")
    text = str(found.get("text") or "")
    failure, packed = found.get("failure"), found.get("mask")
    if failure is not None:
        kind = failure.get("kind") if isinstance(failure, dict) else None
        detail = str(failure.get("detail", "")) if isinstance(failure, dict) else str(failure)
        known = cast("FailureKind", kind if kind in get_args(FailureKind) else "error")
        return SegmentResult(mask=None, failure=Failure(kind=known, detail=detail[:300]), text=text)
    if packed is None:
        return _bad("neither a mask nor a failure")
    try:
        mask = _mask(packed)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return _bad(f"not a mask: {error}")
    if mask.shape != request.image.shape[:2]:
        return _bad(f"a mask of {mask.shape} for an image of {request.image.shape[:2]}")
    score = found.get("score", 1.0)
    return SegmentResult(mask=mask, text=text, score=float(score) if isinstance(score, int | float) else 1.0)


def _mask(packed: Any) -> Mask:
    if isinstance(packed, str):
        return read_mask(base64.b64decode(packed, validate=True)).truth.mask
    return decode_rle(Rle.model_validate_json(json.dumps({"size": packed["size"], "counts": packed["counts"]})))


def _bad(detail: str) -> SegmentResult:
    return SegmentResult(mask=None, failure=Failure(kind="bad_reply", detail=detail[:300]))


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
