"""The baseline that runs anywhere: the portable detector and mask model, which know kinds of things and no names.

Asked for a person it looks for people, asked for anything else it looks for whatever stands out.
"""

from __future__ import annotations

from engine.core.protocols import Detector, MaskModel
from inference.segmenters.grounded_sam import GroundedSam
from inference.segmenters.phrases import asks_for_person, noun_of, phrase_of

PERSON = "person"


def portable_phrase(prompt: str) -> str:
    """ "person" for people; for things the noun of the question or the phrase."""
    if asks_for_person(prompt):
        return PERSON
    phrase = phrase_of(prompt)
    return phrase if phrase else noun_of(prompt)


def portable(detector: Detector, mask_model: MaskModel) -> GroundedSam:
    """The segmenter called "portable"."""
    return GroundedSam(detector, mask_model, name="portable", phrase=portable_phrase)
