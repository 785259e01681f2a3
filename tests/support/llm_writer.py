"""What the loopback model server answers to a writing request: real questions about the article it was sent.

It reads the article out of the request's own text, writes with the template writer, and returns the reply's JSON. So
a run against the server ends in sensible rows, and the same request always gets the same reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from engine.core.config import AskSection
from engine.core.schema import Article, ImageRef
from engine.questions.draft import Draft
from engine.questions.writers.template import write_from_text


def write_reply(body: Mapping[str, Any]) -> tuple[str, tuple[int, int]]:
    """The reply's text and its tokens in and out, for a body of /chat/completions or /responses."""
    system, user = texts_of(body)
    found = re.search(r"^Title: (.*?)\n\n(Picture 1: .*?)\n\nText:\n(.*)", user, re.S | re.M)
    if found is None:
        reply = short_answer(user)
    else:
        reply = json.dumps({"pairs": pairs_for(found[1], found[2], found[3])}, ensure_ascii=False)
    return reply, (len(system + user) // 4 + 1, len(reply) // 4 + 1)


def texts_of(body: Mapping[str, Any]) -> tuple[str, str]:
    """System and user text of a request of either endpoint."""
    if "messages" in body:
        system, user = (message["content"] for message in body["messages"][:2])
    else:
        system, user = body.get("instructions", ""), body["input"][0]["content"]
    if isinstance(user, list):
        user = "\n".join(part.get("text", "") for part in user)
    return system, user


def pairs_for(title: str, captions: str, text: str) -> list[dict[str, Any]]:
    lines = re.findall(r"^Picture \d+: (.*)$", captions, re.M)
    images = tuple(
        ImageRef(
            sha256=f"{number:064x}", ext="jpg", url=f"http://x.example/{number}.jpg", width=8, height=8, caption=line
        )
        for number, line in enumerate(lines, 1)
    )
    article = Article(
        id="0", url="http://x.example/", canonical_url="http://x.example/", title=title, text=text, images=images
    )
    drafts = [item for item in write_from_text(article, AskSection(writer="template")) if isinstance(item, Draft)]
    return [
        {
            "image": int(draft.image.sha256, 16),
            "entity": draft.answer,
            "entity_type": draft.entity_type,
            "phrase": draft.phrase,
            "position": draft.position,
            "question": draft.question,
            "answer": draft.answer,
            "evidence": draft.evidence,
            "kind": draft.kind,
            "aliases": list(draft.aliases),
        }
        for draft in drafts
    ]


def short_answer(user: str) -> str:
    """To anything else: it does not know. JSON if the request shows a schema with an `answer`."""
    return json.dumps({"answer": "unknown", "known": False})
