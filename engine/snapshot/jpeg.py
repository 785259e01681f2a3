"""JPEG files without their metadata, pixels untouched.

A published photo keeps the bytes of its pixels as the publisher made them, but not the blocks beside them:
Exif (with its GPS place and its thumbnail, which may show what was cropped away), XMP, IPTC, comments and whatever
lies behind the end of the image. The colour profile (APP2 ICC) and Adobe's transform flag (APP14) stay, since
they change how the pixels look. Marker layout: ITU-T T.81, annex B.
"""

from __future__ import annotations

import re

_SOI, _EOI, _SOS, _COM = 0xD8, 0xD9, 0xDA, 0xFE
#: Inside entropy-coded data FF is followed by 00 (a stuffed byte) or by a restart marker.
_MARKER = re.compile(rb"\xff(?:[\x01-\xcf\xd8-\xfe])", re.DOTALL)


class JpegError(ValueError):
    """The bytes do not have the layout of a JPEG file."""


def without_metadata(data: bytes) -> bytes:
    """The file with only the segments that its pixels and colours need. Raises `JpegError`.

    Doing it twice gives what doing it once gives.
    """
    if data[:2] != b"\xff\xd8":
        raise JpegError("no start of image")
    out = [data[:2]]
    at = 2
    while True:
        marker, at = _next_marker(data, at)
        if marker == _EOI:
            out.append(b"\xff\xd9")
            return b"".join(out)
        if marker == 0x01 or 0xD0 <= marker <= 0xD7:
            out.append(bytes((0xFF, marker)))
            continue
        if at + 2 > len(data):
            raise JpegError("ends inside a segment")
        length = int.from_bytes(data[at : at + 2], "big")
        if length < 2 or at + length > len(data):
            raise JpegError("a segment is longer than the file")
        if _wanted(marker, data[at + 2 : at + 16]):
            out.append(bytes((0xFF, marker)))
            out.append(data[at : at + length])
        at += length
        if marker == _SOS:
            end = _MARKER.search(data, at)
            if end is None:
                raise JpegError("no end of image")
            out.append(data[at : end.start()])
            at = end.start()


def _next_marker(data: bytes, at: int) -> tuple[int, int]:
    if at >= len(data) or data[at] != 0xFF:
        raise JpegError(f"no marker at byte {at}")
    while at < len(data) and data[at] == 0xFF:
        at += 1
    if at >= len(data):
        raise JpegError("ends before a marker")
    return data[at], at + 1


def _wanted(marker: int, head: bytes) -> bool:
    if marker == _COM:
        return False
    if not 0xE0 <= marker <= 0xEF:
        return True
    return (
        (marker == 0xE0 and head.startswith(b"JFIF\0"))
        or (marker == 0xE2 and head.startswith(b"ICC_PROFILE\0"))
        or (marker == 0xEE and head.startswith(b"Adobe"))
    )
