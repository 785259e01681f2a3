"""Picture addresses: the largest of a set, the same picture in several sizes, and what is never a news photo.

Addresses only; whether the bytes are a picture is found out after fetching.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

from engine.web.urls import host_of, join

_SIZE_PARAM = re.compile(
    r"(?i)^(w|h|wid|hei|width|height|imwidth|maxw|maxh|max-w|max-h|mw|mh|size|resize|fit|crop|rect|q|quality|qlt|dpr|"
    r"auto|format|fm|fmt|output-format|impolicy|cs|sharp|s|ssl|strip|zoom|downsize|interpolation|cropresize|"
    r"imformat|optimize|op_usm|compress|disable|precrop|enable|usm)$"
)
_SIZE_NAME = re.compile(
    r"(?i)[-_](\d{2,4}x\d{2,4}|(?:w|h)?(?:75|100|120|150|160|200|240|300|320|360|400|480|500|540|600|620|640|660|700|"
    r"720|750|768|780|800|840|900|960|970|976|1000|1020|1024|1080|1200|1240|1280|1300|1400|1440|1500|1536|1600|1800|"
    r"1920|2000|2048|2400|2560|3000)w?|thumb(nail)?|small|medium|large|scaled|full|orig(inal)?|master)(?=\.\w{3,4}$|$)"
)
_SIZE_PART = re.compile(
    r"(?i)^(\d{2,4}x\d{2,4}|w\d{2,4}|h\d{2,4}|\d{3,4}w|(w|h|c|q|f|g|ar|dpr|e|fl)_[\w:.,]+|standard|ws|"
    r"(?:240|320|480|640|800|976|1024|1280|1600|1920|2048))$"
)
# Names that say what a picture is for. Whole words only: "logologist.jpg" and "icons-of-design" stay.
_NEVER = re.compile(
    r"(?i)(?:^|[/_\-.?=])(logos?|favicon|sprites?|icons?|avatars?|placeholder|blank|spacer|pixel|transparent|loading|"
    r"spinner|emoji|badges?|button|btn|default[-_]?(image|img|share|og|thumb)?|share[-_]?(image|img|logo)?|"
    r"social[-_]?share|no[-_]?image|noimg|dummy|1x1|gravatar|banner[-_]?ad|ads?|advert\w*|tracking|captcha|"
    r"apple-touch-icon|og[-_]?default|fallback|paywall|qr[-_]?code|author|headshots?|byline)(?=$|[/_\-.?&=\d])"
)
_NEVER_HOST = re.compile(
    r"(?i)(^|\.)(stats?|pixel|track(ing|er)?|analytics|ads?|adserver|doubleclick|scorecardresearch|gravatar|"
    r"googlesyndication|quantserve|chartbeat|omtrdc|2o7)\."
)
_NEVER_SUFFIX = (
    ".svg",
    ".svgz",
    ".ico",
    ".mp4",
    ".mp3",
    ".m3u8",
    ".webm",
    ".mov",
    ".pdf",
    ".js",
    ".css",
    ".html",
    ".php",
)
PICTURE_SUFFIX = (".jpg", ".jpeg", ".png", ".webp", ".avif", ".gif", ".tif", ".tiff", ".jfif")


def fold_key(url: str) -> str:
    """One key for all sizes of a picture: without size parameters, size suffixes and format."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    names = [part for part in parts.path.split("/") if part and not _SIZE_PART.match(part)]
    stem = re.sub(r"(?i)(\.(jpe?g|png|webp|avif|gif|jfif))+$", "", names[-1]) if names else ""
    stem = _SIZE_NAME.sub("", stem) or stem
    query = sorted(
        (name, value)
        for name, value in parse_qsl(parts.query)
        if not _SIZE_PARAM.match(name) and not name.lower().startswith("utm_") and len(value) < 64
    )
    return f"{host_of(url)}/{'/'.join([*names[:-1], stem])}?{urlencode(query)}"


def is_never_a_photo(url: str) -> bool:
    """Logos, sprites, placeholders, trackers and what is no picture, by address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    path = parts.path
    if path.lower().endswith(_NEVER_SUFFIX):
        return True
    name = "/".join(path.split("/")[-2:])
    return bool(_NEVER.search("/" + name)) or bool(_NEVER_HOST.search(parts.hostname or ""))


def largest(base: str, srcset: str) -> tuple[str, float]:
    """The largest candidate of a srcset (WHATWG HTML, 4.8.4.2) and its width, or 1000 per x of density."""
    best, size = "", -1.0
    for entry in re.findall(r"\s*([^\s,]\S*[^\s,]|[^\s,])(?:\s+([\d.]+)([wxh]))?(?:\s+[\d.]+h)?\s*(?:,|$)", srcset):
        url, number, unit = entry
        value = float(number) * (1000.0 if unit == "x" else 1.0) if number else 1.0
        found = join(base, url)
        if found and value > size:
            best, size = found, value
    return best, size


def size_in(text: str | None) -> int | None:
    """Pixels of a width or height attribute; None for percent and nonsense."""
    match = re.match(r"^\s*(\d{1,5})(?:\.\d+)?\s*(?:px)?\s*$", text or "")
    return int(match[1]) if match and int(match[1]) > 0 else None


def width_in_url(url: str) -> int | None:
    """A width that a picture's address states, e.g. ?w=1200."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name.lower() in ("w", "width", "wid", "imwidth") and value.isdigit():
            return int(value)
    return None
