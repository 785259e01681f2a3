"""What goes over the wire and what comes back: request bodies for the two endpoints, replies in one shape.

Pure functions. `finish_reason` is looked at before the content: a list cut by the limit may still be valid JSON, and
a reasoning model that used up its budget has no content at all.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from engine.core.config import LlmSection
from engine.core.protocols import ChatRequest
from engine.llm.structured import instruction, strict

Mode = Literal["json_schema", "json_object_schema", "json_object", "plain"]
#: What is tried one after the other when the server may choose; llama.cpp's server takes the second.
LADDER: tuple[Mode, ...] = ("json_schema", "json_object_schema", "json_object", "plain")
_START: dict[str, Mode] = {
    "auto": "json_schema",
    "json_schema": "json_schema",
    "json_object": "json_object_schema",
    "plain": "plain",
}
_SAYS_NO = re.compile(
    r"^\W*(i['’]m sorry|i am sorry|sorry|i can(no|['’])t|i can not|i['’]m unable|i am unable|i won['’]t)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How this server wants to be asked; starts strict and only ever gives way."""

    mode: Mode = "json_schema"
    token_field: str = "max_tokens"
    dropped: frozenset[str] = frozenset()

    @classmethod
    def of(cls, config: LlmSection) -> Dialect:
        field = "max_output_tokens" if config.api == "responses" else "max_tokens"
        return cls(_START[config.structured], field)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reply's kind, text and counts. `tokens_in` is None if the server did not count."""

    status: Literal["ok", "refused", "truncated", "filtered", "empty", "error"]
    text: str = ""
    detail: str = ""
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


def adapt(dialect: Dialect, message: str, *, pinned: bool) -> Dialect | None:
    """Another way to ask after the server complained about a parameter; None if there is none left.

    `pinned` means that the config names the way of asking for JSON, so that one is not changed.
    """
    text = message.lower()
    if "max_completion_tokens" in text and dialect.token_field == "max_tokens":
        return replace(dialect, token_field="max_completion_tokens")
    for name in ("temperature", "seed"):
        if name in text and name not in dialect.dropped:
            return replace(dialect, dropped=dialect.dropped | {name})
    if re.search(r"response_format|json_schema|json_object|structured|text\.format|'text' or|schema", text):
        step = LADDER.index(dialect.mode) + 1
        if step < len(LADDER) and (not pinned or (dialect.mode, LADDER[step]) == ("json_object_schema", "json_object")):
            return replace(dialect, mode=LADDER[step])
    return None


def body_of(request: ChatRequest, config: LlmSection, dialect: Dialect) -> dict[str, Any]:
    """Keyword arguments for the SDK's `create`."""
    body: dict[str, Any] = {"model": config.model, dialect.token_field: request.max_tokens}
    if "temperature" not in dialect.dropped:
        body["temperature"] = request.temperature or config.temperature
    if config.api == "chat" and config.seed is not None and "seed" not in dialect.dropped:
        body["seed"] = config.seed
    system = request.system
    if request.schema is not None and dialect.mode != "json_schema":
        system = f"{system}\n\n{instruction(request.schema)}"
    if config.api == "chat":
        body["messages"] = [
            {"role": "system", "content": system},
            {"role": "user", "content": _chat_content(request)},
        ]
        if request.schema is not None and dialect.mode != "plain":
            body["response_format"] = _format(request, dialect)
    else:
        body["instructions"] = system
        body["input"] = [{"role": "user", "content": _responses_content(request)}]
        if request.schema is not None and dialect.mode != "plain":
            told = _format(request, dialect)
            inner = told.pop("json_schema", None)
            body["text"] = {"format": {**told, **(inner or {})}}
    return body


def read_chat(found: Mapping[str, Any]) -> Outcome:
    """The outcome of a decoded body of /chat/completions."""
    usage = _mapping(found.get("usage"))
    counts: dict[str, Any] = {
        "model": str(found.get("model") or ""),
        "tokens_in": _count(usage.get("prompt_tokens")),
        "tokens_out": _count(usage.get("completion_tokens")),
    }
    choices = found.get("choices")
    if found.get("error") or not isinstance(choices, list) or not choices:
        return Outcome("error", detail=_complaint(found, "no choices in the reply"), **counts)
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = _mapping(choice.get("message"))
    reason = choice.get("finish_reason")
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    if choice.get("error") or reason == "error":
        return Outcome("error", detail=_complaint(choice, "the provider ended the reply with an error"), **counts)
    return _judge(text, str(message.get("refusal") or ""), str(reason or ""), counts)


def read_responses(found: Mapping[str, Any]) -> Outcome:
    """The outcome of a decoded body of /responses."""
    usage = _mapping(found.get("usage"))
    counts: dict[str, Any] = {
        "model": str(found.get("model") or ""),
        "tokens_in": _count(usage.get("input_tokens")),
        "tokens_out": _count(usage.get("output_tokens")),
    }
    state = found.get("status")
    output = found.get("output")
    if found.get("error") or state in ("failed", "cancelled") or not isinstance(output, list):
        return Outcome("error", detail=_complaint(found, f"the response is {state}"), **counts)
    parts = [part for item in output if isinstance(item, dict) for part in _mappings(item.get("content"))]
    text = "".join(str(part.get("text") or "") for part in parts if part.get("type") == "output_text")
    refusal = "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal")
    reason = ""
    if state == "incomplete":
        told = _mapping(found.get("incomplete_details")).get("reason")
        reason = "content_filter" if told == "content_filter" else "length"
    return _judge(text, refusal, reason, counts)


def estimate_tokens(request: ChatRequest) -> int:
    """Upper guess of a request's input tokens: a token per three bytes, 1,500 per picture, 50 for the frame."""
    texts = request.system + request.user + (json.dumps(dict(request.schema)) if request.schema else "")
    return len(texts.encode("utf-8", "replace")) // 3 + 1_500 * len(request.images) + 50


def _judge(text: str, refusal: str, reason: str, counts: Mapping[str, Any]) -> Outcome:
    if reason == "length":
        return Outcome("truncated", text, "the reply was cut by the token limit", **counts)
    if reason == "content_filter":
        return Outcome("filtered", text, "the provider's content filter ended the reply", **counts)
    if refusal:
        return Outcome("refused", text, refusal[:300], **counts)
    if not text.strip():
        return Outcome("empty", "", f"no content (finish_reason {reason or 'not given'})", **counts)
    if "{" not in text and _SAYS_NO.match(text):
        return Outcome("refused", text, " ".join(text.split())[:300], **counts)
    return Outcome("ok", text, **counts)


def _format(request: ChatRequest, dialect: Dialect) -> dict[str, Any]:
    schema = dict(request.schema or {})
    if dialect.mode == "json_schema":
        inner = {"name": request.schema_name, "schema": strict(schema), "strict": True}
        return {"type": "json_schema", "json_schema": inner}
    if dialect.mode == "json_object_schema":
        return {"type": "json_object", "schema": schema}
    return {"type": "json_object"}


def _chat_content(request: ChatRequest) -> str | list[dict[str, Any]]:
    if not request.images:
        return request.user
    pictures = [{"type": "image_url", "image_url": {"url": _data_url(data)}} for data in request.images]
    return [{"type": "text", "text": request.user}, *pictures]


def _responses_content(request: ChatRequest) -> list[dict[str, Any]]:
    pictures = [{"type": "input_image", "image_url": _data_url(data)} for data in request.images]
    return [{"type": "input_text", "text": request.user}, *pictures]


def _data_url(data: bytes) -> str:
    kind = "png" if data.startswith(b"\x89PNG") else "webp" if data[8:12] == b"WEBP" else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _complaint(found: Mapping[str, Any], otherwise: str) -> str:
    error = found.get("error")
    if isinstance(error, dict):
        error = error.get("message") or error.get("code")
    return str(error or otherwise)[:300]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
