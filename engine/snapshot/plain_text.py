"""What a published text may hold: characters that can be seen, in the order in which they are written."""

from __future__ import annotations

import unicodedata

#: They turn the direction of what follows, so that a reader sees another text than a program.
TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def plain(text: str) -> str:
    """A text of one line: what cannot be seen becomes a space, overrides of direction are left out."""
    seen = "".join("" if char in TURNING else " " if odd_character(char) else char for char in text)
    return text if seen == text else " ".join(seen.split())


def odd_character(text: str) -> str:
    """The first control character, line break, surrogate or direction override of a text as U+XXXX; "" if none."""
    for char in text:
        if char in TURNING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            return f"U+{ord(char):04X}"
    return ""
