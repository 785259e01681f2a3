"""Does a sentence say of a name that it has a public role? By the noun beside it, or by what it is said to do.

"Mayor Ilse Brandvik", "the mayor of Grell, Signe Aalto", "Eileen Collins, a retired astronaut", "Wenche Solbakken, who
has headed the institute". A role counts only for the name it stands with: not across another name, not where it is
somebody's ("the mayor's driver Otto Klein", "the poet's wife"), not in what the person did ("met the president").
Patterns of English sentences, no model; a role that is missed costs a question, one that is made up a private person.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.questions.lexicon import OPENERS, PUBLIC_ROLES, TITLES
from engine.questions.text import fold, level


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: How far from the name a role may stand, in words before and after.
BEFORE_WORDS, AFTER_WORDS = 6, 12
_WORD = re.compile(r"[^\W_]+(?:['\-&.][^\W_]+)*")
_END = re.compile(r"[.;:!?()\"]")
#: Words across which a role before a name is another one's.
_APART = _set("and or with by beside against after before behind between while said says told met to from than as")
_LINKS = _set("of at for in the de du di von van la")
#: Whom somebody knows is not what they are.
_RELATIONS = _set(
    """
    wife husband widow widower son daughter mother father brother sister sibling twin cousin uncle aunt niece nephew
    parent parents child children friend neighbour neighbor fan supporter follower driver assistant aide secretary
    bodyguard nurse nanny cook gardener patient pupil student classmate tenant
    """
)
_IS = _set("is was are were became remains remained been")
_HAVE = _set("has had have also then now still once")
#: What only people in public office do, whatever follows; and what is public only if an institution follows.
_HEADS = _set(
    """
    heads headed directs directed chairs chaired captains captained governs governed commands commanded presides
    presided coaches coached
    """
)
_LEADS = _set("leads led runs ran run founded co-founded manages managed represents represented won")
_INSTITUTIONS = _set(
    """
    ministry minister institute union company authority party league orchestra philharmonic government department
    agency university hospital museum council commission committee inquiry investigation bank board federation
    association academy championship championships cup title medal race marathon tour list table rankings team squad
    side expedition mission project works campaign port city state country parliament opposition newspaper theatre
    opera laboratory observatory
    """
)
_FINITE = _set("is was has had will would said of in at for from with to")
_HONOURED = re.compile(
    r"\bfirst (?:\w+ ){1,3}to\b|\bwinner of\b(?! (?:\S+ ){0,3}(?:raffle|lottery|tombola|jackpot|quiz|draw)\b)"
    r"|\belected\b|\bgold medal"
)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a levelled sentence: folded, whether it begins with a capital, whether it is a possessive, and what
    stands between it and the word before."""

    folded: str
    capital: bool
    owner: bool
    gap: str


def role_in(sentence: str, name: str, *, following: str = "") -> str:
    """The role that a sentence states for a name, or the one by which the `following` sentence goes on; "" for none."""
    words = _words(sentence)
    wanted = [word.folded for word in _words(name)]
    for start in range(len(words) - len(wanted) + 1):
        found = [word.folded for word in words[start : start + len(wanted)]]
        # a surname after somebody's given name is somebody else's
        if found != wanted or (len(wanted) == 1 and start and _is_given(words[start - 1])):
            continue
        told = _before(words, start) or _after(words[start + len(wanted) :])
        if told:
            return told
    return role_continued(following)


def has_role(text: str) -> bool:
    """Whether a text names a public role at all."""
    return any(word.folded in PUBLIC_ROLES for word in _words(text))


def role_continued(following: str) -> str:
    """A role by which the next sentence goes on: "The Navy admiral is the subject of the lecture."."""
    words = _words(following)
    if not words or words[0].folded not in ("the", "this"):
        return ""
    for place, word in enumerate(words[1:8], 1):
        if word.folded in PUBLIC_ROLES and not word.owner:
            rest = words[place + 1 : place + 6]
            verb = next((index for index, other in enumerate(rest) if other.folded in _FINITE), len(rest))
            named = any(other.capital for other in rest[: verb + 3] if not other.folded.isdigit())
            return "" if named else word.folded
        if word.folded in _FINITE:
            break
    return ""


def _words(text: str) -> list[_Word]:
    plain = level(text)
    found: list[_Word] = []
    end = 0
    for match in _WORD.finditer(plain):
        raw = match[0]
        owner = raw.lower().endswith("'s") or plain[match.end() : match.end() + 1] == "'"
        bare = re.sub(r"'[sS]$", "", raw)
        found.append(_Word(fold(bare), raw[0].isupper(), owner, plain[end : match.start()]))
        end = match.end()
    return found


def _is_given(word: _Word) -> bool:
    return word.capital and word.folded not in TITLES | OPENERS | PUBLIC_ROLES


def _before(words: Sequence[_Word], start: int) -> str:
    """A role in front of the name: "Mayor X", "the mayor of Grell, X", "minister for transport X"."""
    for place in range(start - 1, max(-1, start - 1 - BEFORE_WORDS), -1):
        word, gap = words[place], words[place + 1].gap
        if _END.search(gap) or ("," in gap and place != start - 1):
            return ""
        if word.owner or word.folded in _APART | _RELATIONS:
            return ""
        if word.folded in PUBLIC_ROLES:
            return word.folded
        linked = place > 0 and (words[place - 1].folded in _LINKS or words[place - 1].capital)
        if word.capital and word.folded not in TITLES and not linked and place:
            return ""
    return ""


def _after(words: Sequence[_Word]) -> str:
    """A role behind the name: an apposition, "is the ...", "who has headed the ...", an honour."""
    part = list(words[: AFTER_WORDS + 2])
    for place, word in enumerate(part):
        if place and _END.search(word.gap):
            part = part[:place]
            break
    if not part or _END.search(part[0].gap.replace("(", "")):
        return ""
    apposed = part[0].gap.lstrip()[:1] in (",", "(", "-")
    rest = part[1:] if part[0].folded in ("who", "which") else part
    rest = _without(rest, _HAVE)
    if rest and (not apposed or part[0].folded in ("who", "which")):
        if rest[0].folded in _HEADS and not (len(rest) > 1 and rest[1].folded in ("her", "his", "their")):
            return rest[0].folded
        if rest[0].folded in _LEADS and any(word.folded in _INSTITUTIONS for word in rest[1:7]):
            return rest[0].folded
    if apposed or (rest and rest[0].folded in _IS):
        for word in rest:
            if word.owner or word.folded in _RELATIONS | {"with", "met", "told"}:
                break
            if word.folded in PUBLIC_ROLES:
                return word.folded
    told = _HONOURED.search(" ".join(word.folded for word in words[:20]))
    return str(told[0]) if told else ""


def _without(words: Sequence[_Word], dropped: frozenset[str]) -> list[_Word]:
    place = 0
    while place < len(words) and words[place].folded in dropped:
        place += 1
    return list(words[place:])
