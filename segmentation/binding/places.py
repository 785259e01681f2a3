"""Place words of captions: "left", "second from right", "centre", "in the background", "in red".

Reads the words only; what they mean for the boxes of a picture is decided in `segmentation.binding.evidence`.
A language is one row of the tables.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

Kind = Literal["from_left", "from_right", "centre", "top", "bottom", "front", "back"]

_SIDES: dict[str, Kind] = {
    # English, German, French, Spanish, Italian, Portuguese, Dutch
    **dict.fromkeys(
        ("left", "leftmost", "l", "links", "linke", "gauche", "izquierda", "sinistra", "esquerda"), "from_left"
    ),
    **dict.fromkeys(
        ("right", "rightmost", "r", "rechts", "rechte", "droite", "derecha", "destra", "direita"), "from_right"
    ),
    **dict.fromkeys(
        ("centre", "center", "middle", "c", "central", "mitte", "mittig", "milieu", "centro", "midden"), "centre"
    ),
    **dict.fromkeys(("top", "above", "oben", "haut", "arriba", "alto", "boven"), "top"),
    **dict.fromkeys(("bottom", "below", "unten", "bas", "abajo", "basso", "abaixo", "onder"), "bottom"),
    **dict.fromkeys(("front", "foreground", "vordergrund", "vorne", "premier plan"), "front"),
    **dict.fromkeys(
        ("back", "background", "behind", "hintergrund", "hinten", "arriere-plan", "fondo", "sfondo"), "back"
    ),
}
_ORDINALS = {
    1: ("first", "1st", "far", "erste", "erster", "premier", "premiere", "primero", "primera", "primo", "prima"),
    2: ("second", "2nd", "zweite", "zweiter", "deuxieme", "segundo", "segunda", "secondo", "seconda"),
    3: ("third", "3rd", "dritte", "dritter", "troisieme", "tercero", "tercera", "terzo", "terza"),
    4: ("fourth", "4th", "vierte", "vierter", "quatrieme", "cuarto", "cuarta", "quarto", "quarta"),
    5: ("fifth", "5th", "funfte", "funfter", "cinquieme", "quinto", "quinta"),
    6: ("sixth", "6th", "sechste", "sechster", "sixieme", "sexto", "sexta", "sesto"),
}
_COUNT = {word: number for number, words in _ORDINALS.items() for word in words}
#: OpenCV hue (0 to 179) ranges of colour words; saturation and value decide black, white and grey.
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black", "white", "grey", "gray", "brown")


@dataclass(frozen=True, slots=True)
class Place:
    """What place words say: `kind`, and for sides the rank counted from that side, from 1."""

    kind: Kind
    rank: int = 1


def read_place(words: str) -> Place | None:
    """The place, None if the words say none that is understood."""
    tokens = _tokens(words)
    found: list[tuple[int, Kind]] = [(index, _SIDES[token]) for index, token in enumerate(tokens) if token in _SIDES]
    if not found:
        return None
    sides = [pair for pair in found if pair[1] in ("from_left", "from_right")]
    # "centre left" and "second from left, front row" speak of the side first; two opposite sides say nothing
    if len({kind for _, kind in sides}) > 1:
        return None
    if sides:
        rank = next((_COUNT[token] for token in tokens[: sides[0][0]] if token in _COUNT), 1)
        if any(kind == "centre" for _, kind in found):
            return None  # "centre left": neither the centre nor the edge
        return Place(sides[0][1], rank)
    return Place(found[0][1])


def read_colour(words: str) -> str | None:
    """A colour that is worn or shown: "in red", "in the blue suit", "wearing green"."""
    match = re.search(rf"\b(?:in|wearing|with)\b(?:\s+\w+){{0,2}}?\s+({'|'.join(COLOURS)})\b", words.lower())
    return match[1].replace("gray", "grey") if match else None


def _tokens(words: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", words.lower())
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return re.findall(r"[a-z0-9]+(?:-plan)?", plain)
