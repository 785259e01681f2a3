"""What a published text may hold: characters that can be seen, in the order in which they are written."""

from __future__ import annotations

import unicodedata

#: They turn the direction of what follows, so that a reader sees another text than a program.
TURNING = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


def odd_character(text: str) -> str:
    """The first control character, line break, surrogate or direction override of a text as U+XXXX; "" if none."""
    for char in text:
        if char in TURNING or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            return f"U+{ord(char):04X}"
    return ""
