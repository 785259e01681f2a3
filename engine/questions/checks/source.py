"""Are answer and evidence really in the caption or the text? Levelled, never fuzzy."""

from __future__ import annotations

import re

from engine.core.schema import Article
from engine.questions.aliases import mentioned
from engine.questions.draft import Draft
from engine.questions.text import fold, has_phrase, level, sentences

MIN_EVIDENCE_WORDS = 4


def answer_not_in_source(draft: Draft, article: Article) -> str | None:
    """Why the answer is not the article's, or None."""
    if has_phrase(draft.image.caption, draft.answer) or has_phrase(article.text, draft.answer):
        return None
    return f"neither the caption nor the text names '{draft.answer}'"


def evidence_not_in_source(draft: Draft, article: Article) -> str | None:
    """Why the evidence is no quotation about the answer, or None."""
    if len(draft.evidence.split()) < MIN_EVIDENCE_WORDS:
        return f"the evidence has fewer than {MIN_EVIDENCE_WORDS} words"
    found = locate(draft.evidence, draft.image.caption, article.text)
    if found is None:
        return f"the quotation is not in the caption or the text: '{draft.evidence[:120]}'"
    where, quoted = found
    source = draft.image.caption if where == "caption" else article.text
    around = _around(quoted, source)
    if not mentioned(draft.answer, draft.aliases, around):
        return f"the quotation does not speak of '{draft.answer}'"
    return None


def locate(evidence: str, caption: str, text: str) -> tuple[str, str] | None:
    """("caption" or "text", the source's own words) of a quotation, None if it is in neither."""
    wanted = level(evidence).strip().strip("\"'").strip()
    wanted = re.sub(r"^(?:\.\.\.|…)\s*|\s*(?:\.\.\.|…)$", "", wanted)
    if not wanted:
        return None
    for where, source in (("text", text), ("caption", caption)):
        quoted = _find(wanted, source)
        if quoted:
            return where, quoted
    return None


def spelled_as_in(answer: str, caption: str, text: str) -> str:
    """The answer as the article writes it, by its first place; the answer itself if it is nowhere."""
    for source in (text, caption):
        quoted = _find(level(answer), source)
        if quoted and not (quoted.isupper() and len(quoted) > 4):
            return level(quoted)
    return level(answer)


def _find(wanted: str, source: str) -> str:
    """The piece of `source` that is `wanted` once both are levelled and folded, at whole words."""
    folded = fold(wanted)
    if folded not in fold(source):
        return ""
    # most quotations are verbatim: then nothing has to be found back
    start = source.find(wanted)
    if start >= 0 and not _inside_word(source, start, start + len(wanted)):
        return source[start : start + len(wanted)]
    # find it back in the verbatim text: walk over its words, which levelling neither splits nor joins
    spans = [(match.start(), match.end()) for match in re.finditer(r"\S+", source)]
    count = len(folded.split())
    strip = "\"'“”‘’(),.;:!?[]"
    for index in range(len(spans) - count + 1):
        piece = source[spans[index][0] : spans[index + count - 1][1]]
        plain = fold(piece)
        if folded in plain and plain.strip(strip) == folded.strip(strip):
            return piece.strip("\"'“”‘’").rstrip(",;:") if plain != folded else piece
        # a possessive or a bracket may cling to the last word
        if plain.startswith(folded) and re.match(r"'s\b|[^\w]", plain[len(folded) :]):
            return piece[: len(wanted)] if fold(piece[: len(wanted)]) == folded else piece
    return ""


def _inside_word(source: str, start: int, end: int) -> bool:
    before, after = source[start - 1 : start] if start else "", source[end : end + 1]
    return before.isalnum() or after.isalnum()


def _around(quoted: str, source: str) -> str:
    """The quotation, the rest of its sentence, and the sentence before, where a pronoun's name stands."""
    plain, inner = level(source), level(quoted)
    at = plain.find(inner)
    if at < 0:
        return quoted
    before = " ".join(sentences(plain[:at])[-2:])
    after = sentences(plain[at + len(inner) :])
    return f"{before} {inner} {after[0] if after else ''}"
