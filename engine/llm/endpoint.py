"""One HTTP exchange with a model endpoint through the openai SDK, as status, headers and bytes.

The SDK does the transport, authentication and addresses; its retries are off and its parsed types are not used, for
compatible servers answer with bodies that those types do not survive. Deciding, paying and storing are the client's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.core.config import LlmSection
from engine.core.errors import ConfigError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

URL_VARIABLE = "OPENAI_BASE_URL"
DEFAULT_URL = "https://api.openai.com/v1"
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One exchange: status 0 means that there was no answer, and `body` says why.

    `reached` is False only if the server certainly never saw the request.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    reached: bool = True

    def json(self) -> dict[str, Any] | None:
        """The body as a JSON object, or None."""
        try:
            found = json.loads(self.body)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


def redirect(response: Any) -> str | None:
    """Where a request was redirected to, if that lost it: a POST that became a GET, or whatever was not answered
    well at its new place. A redirect that keeps the request and is answered is none of ours."""
    steps = [*response.history, *([response] if 300 <= response.status_code < 400 else [])]
    if not steps or (response.status_code == 200 and all(step.status_code in (307, 308) for step in steps)):
        return None
    first = steps[0]
    return str(first.url.join(first.headers.get("location", "")))


class Endpoint:
    """An OpenAI-compatible endpoint: `[llm] base_url`, else `OPENAI_BASE_URL`, else OpenAI's own."""

    def __init__(self, config: LlmSection, *, api_key: str, environ: Mapping[str, str]) -> None:
        self.url = config.base_url or environ.get(URL_VARIABLE) or DEFAULT_URL
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"'{self.url}' is not the address of a model endpoint: it must begin with http(s)://")
        # a proxy of the environment cannot reach a server on this machine
        self.local = parts.hostname in _LOOPBACK
        self._config = config
        self._key = api_key
        self._client: AsyncOpenAI | None = None

    async def create(self, body: Mapping[str, Any]) -> Answer:
        """POST a body (keyword arguments of the SDK's `create`); every failure of HTTP is a value."""
        client = self.client()
        chat = self._config.api == "chat"
        endpoint: Any = client.chat.completions if chat else client.responses
        # as extra_body the SDK sends it as it is; its walk over typed arguments takes a third of the time of a call
        required = {"model": body["model"], **({"messages": ()} if chat else {})}
        return await self._exchange(endpoint.with_raw_response.create(**required, extra_body=dict(body)))

    async def embed(self, *, model: str, texts: Sequence[str]) -> Answer:
        """POST texts to /embeddings; every failure of HTTP is a value."""
        endpoint: Any = self.client().embeddings
        # without a format the SDK asks for base64, which not every compatible server speaks
        return await self._exchange(
            endpoint.with_raw_response.create(model=model, input=list(texts), encoding_format="float")
        )

    async def _exchange(self, call: Awaitable[Any]) -> Answer:
        import openai

        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            response = (await call).http_response
        except openai.APIStatusError as error:
            response = error.response
        except openai.APITimeoutError:
            told = f"no answer within {self._config.timeout_s:.0f} s"
            return Answer(0, {}, told.encode(), loop.time() - begun)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            # a connection that broke while the answer came had reached the server
            if type(cause).__name__ == "TooManyRedirects":
                return Answer(
                    302, {"location": str(getattr(cause, "request", error.request).url)}, b"", loop.time() - begun
                )
            reached = "connect" not in type(cause).__name__.lower()
            return Answer(0, {}, f"no connection: {cause}".encode(), loop.time() - begun, reached)
        if (location := redirect(response)) is not None:
            return Answer(302, {"location": location}, b"", loop.time() - begun)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status_code, headers, response.content, loop.time() - begun)

    def client(self) -> AsyncOpenAI:
        """The SDK's client, made on first use."""
        if self._client is None:
            import openai

            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self.url,
                max_retries=0,
                timeout=self._config.timeout_s,
                http_client=openai.DefaultAsyncHttpxClient(trust_env=not self.local),
            )
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None
