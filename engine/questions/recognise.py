"""A named-entity recogniser beside the caption patterns, where `[ask] recogniser` names one.

`spacy:en_core_web_sm` uses a spaCy pipeline (extra [ner]; the pipeline is the user's to install, by name or by path).
Patterns know where a caption names who is pictured, a recogniser knows what is a name: what it takes for a place or an
event is no person, and a person whom no pattern saw is added if nothing around the name speaks against it. Its
version is part of the stage's key.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, Protocol

from engine.core.errors import ConfigError
from engine.core.schema import Entity
from engine.questions.captions import may_be_pictured, read_caption, replace_order
from engine.questions.lexicon import ROLE_TITLES, SINGLE_NAME_TITLES
from engine.questions.text import fold, level

GROUP = "nest.recognisers"
_TITLE = rf"(?i:\b(?:{'|'.join(sorted(ROLE_TITLES | SINGLE_NAME_TITLES))}))"
SPACY = "spacy"


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a text, by its offsets, and whether it is a person's."""

    text: str
    start: int
    person: bool


class Recogniser(Protocol):
    """Finds names in one caption. `version` changes where its answers may."""

    name: str
    version: str

    def names(self, text: str) -> Sequence[Name]: ...


class SpacyRecogniser:
    """A spaCy pipeline with an `ner` component, by the name of its package or the path of its folder."""

    name = SPACY
    #: Labels for what a person is not. ORG is left out: the small pipelines take many a foreign name for a company.
    OTHERS = frozenset({"GPE", "FAC", "LOC", "NORP", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE"})

    def __init__(self, pipeline: str) -> None:
        try:
            import spacy
        except ImportError as error:
            raise ConfigError(f"[ask] recogniser = 'spacy:{pipeline}' needs spaCy: install the [ner] extra") from error
        try:
            self._pipeline = spacy.load(pipeline, exclude=["tagger", "parser", "lemmatizer", "attribute_ruler"])
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"[ask] recogniser: spaCy has no pipeline '{pipeline}': install its package (python -m spacy download "
                f"{pipeline}), or write the path of its folder"
            ) from error
        if "ner" not in self._pipeline.pipe_names:
            raise ConfigError(f"[ask] recogniser: the spaCy pipeline '{pipeline}' finds no names (it has no 'ner')")
        meta = self._pipeline.meta
        self.version = f"{meta['lang']}_{meta['name']} {meta['version']}, spacy {spacy.__version__}"

    def names(self, text: str) -> Sequence[Name]:
        found: Any = self._pipeline(text).ents
        return [
            Name(item.text, item.start_char, item.label_ == "PERSON")
            for item in found
            if item.label_ == "PERSON" or item.label_ in self.OTHERS
        ]


@functools.cache
def make_recogniser(told: str) -> Recogniser | None:
    """The recogniser of `[ask] recogniser`: "" for none, `spacy:<pipeline>`, or the name of a plugin. Raises
    `ConfigError` for one that is not there. Loaded once per process."""
    if not told:
        return None
    kind, _, rest = told.partition(":")
    if kind == SPACY and rest:
        return SpacyRecogniser(rest)
    points = {point.name: point for point in entry_points(group=GROUP)}
    if kind not in points:
        known = [f"{SPACY}:<pipeline>", *sorted(points)]
        near = difflib.get_close_matches(kind, [SPACY, *points], n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise ConfigError(f"there is no recogniser '{told}': {hint}known are {', '.join(known)}")
    module, _, name = points[kind].value.partition(":")
    try:
        made: Recogniser = getattr(importlib.import_module(module), name)(rest)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"the recogniser '{told}' cannot be loaded: {error}") from error
    return made


def recogniser_version(told: str) -> str:
    """What of a recogniser goes into a key: the versions of its parts, read without loading it; "" for none."""
    kind, _, rest = told.partition(":")
    if not told:
        return ""
    if kind != SPACY:
        point = next((point for point in entry_points(group=GROUP) if point.name == kind), None)
        return f"{point.value} {point.dist.version if point.dist else ''}".strip() if point else ""
    meta = Path(rest) / "meta.json"
    if meta.is_file():
        return f"{json.loads(meta.read_text(encoding='utf-8')).get('version')}, spacy {_installed(SPACY)}"
    return f"{_installed(rest)}, spacy {_installed(SPACY)}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return "none"


def read_names(caption: str, *, text: str = "", recogniser: Recogniser | None = None) -> tuple[Entity, ...]:
    """Named persons and products of a caption: by patterns, and by the recogniser where there is one."""
    found = read_caption(caption, text=text)
    if recogniser is None:
        return found
    names = recogniser.names(level(caption))
    others = {fold(name.text.removeprefix("the ")) for name in names if not name.person}
    # a place in the picture or a title says more than a recogniser does
    sure = {item.name for item in found if item.position or re.search(rf"{_TITLE} {re.escape(item.name)}", caption)}
    kept = [item for item in found if item.type != "person" or item.name in sure or fold(item.name) not in others]
    seen = {part for item in found for part in fold(item.name).split()}
    for name in names:
        words = fold(name.text).split()
        if (
            name.person
            and len(words) > 1
            and words[0] != "the"
            and not seen & set(words)
            and may_be_pictured(name.text, caption)
        ):
            kept.append(Entity(name=name.text, type="person", phrase="person"))
            seen.update(words)
    places = {item.name: level(caption).find(item.name.split()[-1]) for item in kept}
    ordered = sorted(kept, key=lambda item: places[item.name])
    return tuple(replace_order(item, number, item.position) for number, item in enumerate(ordered))
