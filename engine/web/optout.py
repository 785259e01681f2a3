"""The signs by which publishers decline use for AI: in robots.txt, in response headers, in a page's meta tags (and in
tdmrep.json: see `tdmrep`).

`client` refuses by the first two, the page reader by the third; `[collect] obey_ai_opt_out` decides whether a sign
is a refusal or only a remark in the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Product tokens that stand for gathering training data, as their operators document them.
AI_AGENTS = (
    "GPTBot",
    "CCBot",
    "Google-Extended",
    "ClaudeBot",
    "anthropic-ai",
    "Applebot-Extended",
    "meta-externalagent",
    "Bytespider",
    "cohere-training-data-crawler",
    "Amazonbot",
    "Diffbot",
    "omgili",
)
#: Header of a fetched response that carries a sign which was found and not obeyed.
REMARK_HEADER = "x-nest-ai-opt-out"

_NO_AI = re.compile(r"(?i)\b(noai|noimageai|notrain|no-?ai-?training)\b")


def header_sign(headers: Mapping[str, str], *, image: bool = False) -> str:
    """The sign in response headers (lower-case names), or an empty string. `noimageai` binds images only."""
    tag = headers.get("x-robots-tag", "")
    for match in _NO_AI.finditer(tag):
        if match[1].lower() != "noimageai" or image:
            return f"X-Robots-Tag: {match[1].lower()}"
    if headers.get("tdm-reservation", "").strip() == "1":
        return "tdm-reservation: 1"
    return ""


def meta_sign(metas: Mapping[str, str]) -> str:
    """The sign in a page's meta tags (lower-case name to content), or an empty string."""
    for name in ("robots", *(agent.lower() for agent in AI_AGENTS)):
        match = _NO_AI.search(metas.get(name, ""))
        if match and match[1].lower() != "noimageai":
            return f"meta {name}: {match[1].lower()}"
    if metas.get("tdm-reservation", "").strip() == "1":
        return "meta tdm-reservation: 1"
    return ""
