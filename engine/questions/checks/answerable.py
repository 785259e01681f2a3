"""Could anyone find the answer, and only one? No fleeting details, no places in the picture, no two that fit."""

from __future__ import annotations

import re

from engine.core.schema import Article
from engine.questions.draft import Draft
from engine.questions.lexicon import STOP_WORDS
from engine.questions.text import fold, level, words

#: What only this article's reader could know: who said something to whom, what is said of the page itself.
_FLEETING = re.compile(
    r"""\b(?:
      told[ ](?:our|this|the)[ ](?:reporter|newspaper|paper|correspondent|magazine)
    | spoke[ ](?:to|with)[ ](?:us|our|this[ ]newspaper)
    | in[ ](?:this|our)[ ](?:interview|newspaper|story|report)
    | said[ ](?:so|it|this|that[ ]it[ ]was|yesterday|he|she|they)\b
    | (?:was|is)[ ]quoted
    | (?:is|was)[ ](?:pictured|photographed|shown|seen)\b
    | according[ ]to[ ](?:our|this)\b
    )""",
    re.I | re.X,
)
#: What the picture alone shows: where somebody is and what they look like.
_VISIBLE = re.compile(
    r"""\b(?:
      (?:on|at|to)[ ]the[ ](?:far[ ]|extreme[ ])?(?:left|right)(?:[ ](?:hand[ ])?side)?
      (?:[ ]of[ ]the[ ](?:image|picture|photo))?(?=[?,.][ ]|[?,. ]*$)
    | (?:second|third|fourth)[ ]from[ ](?:the[ ])?(?:left|right)\b
    | in[ ]the[ ](?:foreground|background|middle[ ]of[ ]the[ ](?:image|picture|photo))\b
    | (?:is|are|stands?|standing|sits?|sitting)[ ](?:next[ ]to|beside|between|in[ ]front[ ]of|behind)\b
    | (?:wearing|wears|dressed[ ]in)\b
    | in[ ](?:an?|the)[ ](?:red|blue|green|black|white|yellow|gr[ea]y|dark|orange)[ ]
      (?:suit|dress|shirt|jacket|coat|tie|hat|uniform|jumper|sweater)\b
    | (?:is|are|was|were)[ ](?:smiling|waving)\b
    )""",
    re.I | re.X,
)
#: A subject that is more than one of the picture's, at the beginning of a clause.
_OF_ALL = re.compile(
    r"(?:^|[.;:,\"] |\b(?:and|but|that|while) )(?:both|neither|all (?:two|three|four|five|of)|each of (?:the|them)|"
    r"the (?:two|three|four|five|pair|duo|trio|couple)|they)\b"
)
#: What puts another name beside the first: folded text.
_AND = r",? (?:and|or|nor|as well as|along with|together with|like|just like) (?:the )?"
_LIKEWISE = re.compile(
    r"\b(?:as|so|nor|neither) (?:does|did|do|is|was|are|were|has|had|have|will|would|can|could) (?:the )?"
)
#: Words that tell something, where the question names nobody and nothing and no number.
MIN_TELLING = 3


def question_unanswerable(draft: Draft, article: Article) -> str | None:
    """Why no retrieval could answer it, or None."""
    plain = level(draft.question)
    if match := _FLEETING.search(plain):
        return f"'{match[0]}' is a detail of the article that no search finds"
    if match := _VISIBLE.search(plain):
        return f"'{match[0]}' says where to look instead of what is known"
    telling = [word for word in words(plain) if word not in STOP_WORDS and word not in fold(draft.phrase).split()]
    anchors = re.findall(r"(?<=[a-z,] )(?:[A-Z][\w-]+|\d[\d.,]*)", plain)
    if len(telling) < MIN_TELLING and not (anchors and len(telling) >= 2):
        return "it says too little to be looked up"
    return None


def question_ambiguous(draft: Draft, article: Article) -> str | None:
    """Whether the evidence says the same of another entity of the picture."""
    evidence = fold(draft.evidence)
    own = {fold(name) for name in (draft.answer, *draft.aliases)}
    others = [item for item in draft.entities if item.type == draft.entity_type and fold(item.name) not in own]
    if others and (match := _OF_ALL.search(evidence)):
        return f"'{match[0].strip(' .;:,')}' is said of more than one in the picture"
    for entity in others:
        for other in _forms(entity.name):
            if _LIKEWISE.search(evidence) and re.search(rf"{_LIKEWISE.pattern}{re.escape(other)}(?![^\W_])", evidence):
                return f"the article says that '{entity.name}' did likewise"
            for name in own:
                if _joined(name, other, evidence) and not _only_one(evidence, name):
                    return f"the article says it of '{entity.name}' as well"
    return None


def _joined(first: str, second: str, text: str) -> bool:
    """Whether the text says "first and second" (or "nor", "as well as", "like") in either order."""
    if first not in text or second not in text:
        return False
    one, two = re.escape(first), re.escape(second)
    pair = rf"{one}{_AND}{two}|{two}{_AND}{one}"
    return re.search(rf"(?<![^\W_])(?:{pair})(?![^\W_])", text) is not None


def _forms(name: str) -> set[str]:
    return {fold(name), fold(name.split()[-1])}


def _only_one(evidence: str, name: str) -> bool:
    """A relative clause right after the name speaks of that one: "Okafor and Brandvik, who cut the ribbon"."""
    return re.search(rf"{re.escape(name)}, (?:who|which) ", evidence) is not None
