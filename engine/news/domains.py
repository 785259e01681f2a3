"""The domain of a story: the publisher's section first, then the address, then words of title and text.

The six domains are those of the published benchmark; "unknown" is an answer. No model: the rules are word lists, and a
text decides only with a clear lead.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from engine.core.schema import Domain

_SECTIONS: dict[Domain, str] = {
    "Sports": "sports? football soccer nfl nba mlb nhl tennis golf cricket rugby olympics? f1 formula-?1 "
    "motorsports? athletics cycling boxing ufc premier-league champions-league fussball sportif deportes",
    "Economics": "business econom(y|ics|ia) econom[ií]a markets? finance financial money companies industry trade "
    "wirtschaft finanzen economie négocios negocios banking real-estate personal-finance investing energy "
    "autos?",
    "Technology": "tech(nology)? science sciences sci-?tech gadgets? ai digital computing space internet gaming "
    "video-games wissenschaft technik netzwelt sciences tecnolog[ií]a cyber mobile science-environment",
    "Entertainment": "entertainment arts? culture movies? films? music tv television celebrit(y|ies) books? "
    "theat(er|re) showbiz style fashion kultur culture cultura lifestyle people media streaming hollywood awards",
    "Politics": "politics? political elections? government parliament congress white-house policy politik politique "
    "pol[ií]tica us-politics world-politics diplomacy",
    "Society": "society education health crime courts? law environment climate weather religion family gesellschaft "
    "soci[eé]t[eé] sociedad community local obituaries human-rights immigration education accidents? "
    "wellness",
}
_SECTION_RULES = tuple(
    (domain, re.compile(rf"(?i)^({'|'.join(words.split())})$")) for domain, words in _SECTIONS.items()
)
_WORDS: dict[Domain, str] = {
    "Sports": "match goal goals coach striker midfielder league championship tournament cup olympic medal season "
    "playoff quarterback innings batsman wicket batting stadium team teams scored points referee "
    "semi-final final victory fans defender goalkeeper grand slam podium lap race athlete athletes player "
    "players title champion",
    "Economics": "inflation economy economic shares stock stocks investors bank banks market markets tariff tariffs "
    "revenue profit profits earnings gdp interest rates billion quarter quarterly ceo merger acquisition "
    "retail sales prices price jobs unemployment exports imports currency bond bonds trade shareholders "
    "dividend factory",
    "Technology": "software ai chip chips smartphone phone app apps data algorithm researchers scientists spacecraft "
    "rocket nasa satellite orbit launch robot robots computing internet cyber hackers device devices "
    "startup google apple microsoft openai meta laboratory physics telescope astronaut astronauts mission "
    "engineers model technology",
    "Entertainment": "film films movie movies album singer actor actress band song songs concert festival box-office "
    "premiere director netflix series celebrity hollywood oscar oscars grammy fashion novel author museum "
    "exhibition theatre stage audience tour star role comedy drama music",
    "Politics": "president minister parliament senate congress election elections vote votes voters government party "
    "campaign policy lawmakers senator governor prime cabinet bill treaty summit sanctions diplomat "
    "coalition opposition democrats republicans chancellor legislation ambassador mayor council "
    "administration",
    "Society": "police court judge school schools students hospital patients health doctors climate flood earthquake "
    "fire victims charity community church residents families murder trial prison teachers university "
    "vaccine disease weather storm migrants refugees protest protesters rescue accident children",
}
_WORD_SETS = {domain: frozenset(words.split()) for domain, words in _WORDS.items()}


def domain_of(*, section: str, url: str, title: str, text: str) -> Domain:
    """One of the six domains, or "unknown"."""
    for part in re.split(r"\s*[/|,>&]\s*|\s+and\s+", section.strip()):
        if found := _of_section(part):
            return found
    for part in urlsplit(url).path.split("/")[1:-1]:
        if found := _of_section(part):
            return found
    return _of_words(title, text)


def _of_section(part: str) -> Domain | None:
    name = re.sub(r"[\s_]+", "-", part.strip().lower())
    return next((domain for domain, rule in _SECTION_RULES if rule.match(name)), None) if name else None


def _of_words(title: str, text: str) -> Domain:
    words = re.findall(r"[\w\-]+", f"{title} {title} {title} {text[:3000]}".lower())
    counts = sorted(
        ((sum(word in known for word in words), domain) for domain, known in _WORD_SETS.items()), reverse=True
    )
    (most, domain), (next_most, _) = counts[0], counts[1]
    return domain if most >= 4 and most >= 1.4 * next_most else "unknown"
