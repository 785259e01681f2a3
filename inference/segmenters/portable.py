"""The baseline that runs anywhere: the portable detector and mask model, which know kinds of things and no names.

Asked for a person it looks for people, asked for anything else it looks for whatever stands out.
"""

from __future__ import annotations

from engine.core.protocols import Detector, MaskModel
from inference.segmenters.grounded_sam import GroundedSam
from inference.segmenters.phrases import asks_for_person, phrase_of, words_of

PERSON = "person"
#: Nouns that name people and things alike: "Which speaker ...?" may ask for either.
EITHER = words_of("speaker figure model host star driver guide printer player ranger guard")


def portable_phrases(prompt: str) -> tuple[str, ...]:
    """ "person" for people, the noun for things, both for a noun that may be either (people first: a face is surer)."""
    phrase = phrase_of(prompt)
    last = phrase.split()[-1].lower() if phrase.split() else ""
    if last in EITHER:
        # the detector tells people by the last word of a phrase
        return PERSON, f"{phrase} product"
    return (PERSON,) if asks_for_person(prompt) else (phrase,)


def portable(detector: Detector, mask_model: MaskModel) -> GroundedSam:
    """The segmenter called "portable"."""
    return GroundedSam(detector, mask_model, name="portable", phrases=portable_phrases)
