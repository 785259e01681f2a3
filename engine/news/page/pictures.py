"""Picture addresses: the largest of a set, the same picture in several sizes, and what is never a news photo.

Addresses only; whether the bytes are a picture is found out after fetching.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

from engine.web.urls import join

#: A file name of so many characters names a picture; shorter ones (a.jpg, image.jpg) may be scripts of a sort.
NAMED_CHARS = 8
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
    r"(?i)^(\d{2,4}[x*]\d{2,4}|w\d{2,4}|h\d{2,4}|\d{3,4}w|(w|h|c|q|f|g|ar|dpr|e|fl)_[\w:.,]+|standard|ws|"
    r"(?:240|320|480|640|800|976|1024|1280|1600|1920|2048))$"
)
# Names that say what a picture is for. Whole words only: "logologist.jpg" and "icons-of-design" stay.
_NEVER = re.compile(
    r"(?i)(?:^|[/_\-.?=])(logos?|favicon|sprites?|icons?|avatars?|placeholder|blank|spacer|pixel|transparent|loading|"
    r"spinner|emoji|badges?|button|btn|default[-_]?(image|img|share|og|thumb)?|share[-_]?(image|img|logo)?|"
    r"social[-_]?share|sharing[-_]snippet|no[-_]?image|noimg|dummy|1x1|gravatar|blavatar|banner[-_](ad|\d+)|ads?|"
    r"advert\w*|tracking|captcha|apple-touch-icon|og[-_]?default|opengraph[-_]default|fallback|paywall|qr[-_]?code|"
    r"author|headshots?|byline|flags?|512x512)(?=$|[/_\-.?&=\d])"
)
#: Photographers' and agencies' names in a file's name: a photo, perhaps of a logo.
_AGENCY_NAME = re.compile(
    r"(?i)(?:^|[_\-])(getty(images)?|reuters|afp|shutterstock|istock|unsplash|pexels)(?=[_\-.\d]|$)"
)
#: A file name of so many words tells what is seen ("alibaba-logo-getty-hangzhou"), unless it ends in such a word.
TELLING_WORDS = 4
#: A folder named after a month or day holds all pictures of that time.
_DAY = re.compile(r"^(19|20)\d\d([-_]?\d\d){1,2}$")
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
    """One key for all sizes of a picture: without size parameters, size suffixes, format, and the service that cuts
    it to size."""
    try:
        parts = urlsplit(original_of(url))
    except ValueError:
        return url
    names = [part for part in parts.path.split("/") if part and not _SIZE_PART.match(part)]
    name = names[-1] if names else ""
    stem = re.sub(r"(?i)(\.(jpe?g|png|webp|avif|gif|jfif))+$", "", name)
    told = stem != name and len(stem) >= NAMED_CHARS
    stem = _SIZE_NAME.sub("", stem) or stem
    # the name of a file says which picture it is, its parameters only how it is shown
    query = (
        []
        if told
        else sorted(
            (name, value)
            for name, value in parse_qsl(parts.query)
            if not _SIZE_PARAM.match(name) and not name.lower().startswith("utm_") and len(value) < 64
        )
    )
    host = (parts.hostname or "").removeprefix("www.")
    return f"{host}/{'/'.join([*names[:-1], stem])}?{urlencode(query)}"


def original_of(url: str) -> str:
    """The address of the picture that a resizing service is asked for, e.g. /resize/640x/photos.example/a.jpg or
    ?url=https://photos.example/a.jpg; the address itself where there is none in it."""
    parts = urlsplit(url)
    for name, value in parse_qsl(parts.query):
        if name.lower() in ("url", "src", "image", "img", "u") and _looks_like_a_picture(value):
            return urljoin(url, value)
    path = parts.path if "%3a%2f" not in parts.path.lower() else unquote(parts.path)
    if inner := re.search(r"(?i)/(https?:/{1,2}[\w.\-]+/.+)$", path):
        return re.sub(r"(?i)^(https?):/{1,2}", r"\1://", inner[1])
    hosts = list(re.finditer(r"/(?=((?:[\w\-]+\.)+(?:com|net|org|io|co|uk|de|fr|eu|media|news|tv)/.+))", path))
    return f"{parts.scheme}://{hosts[-1][1]}" if hosts else url


def _looks_like_a_picture(value: str) -> bool:
    if value.startswith(("http://", "https://")):
        return urlsplit(value).path.count("/") >= 1 and len(urlsplit(value).path) > 1
    return value.lower().endswith(PICTURE_SUFFIX)


def tokens_of(url: str) -> frozenset[str]:
    """Parts of an address that can name one picture: words with digits, of at least six characters."""
    try:
        path = urlsplit(original_of(url)).path
    except ValueError:
        return frozenset()
    words = (word.lower() for word in re.split(r"[/.,+=:;!]", unquote(path)))
    return frozenset(word for word in words if len(word) >= 6 and re.search(r"\d", word) and not _DAY.match(word))


def is_never_a_photo(url: str) -> bool:
    """Logos, sprites, placeholders, trackers and what is no picture, by address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return True
    path = parts.path
    if path.lower().endswith(_NEVER_SUFFIX):
        return True
    if not path.strip("/") or _NEVER_HOST.search(parts.hostname or ""):
        return True
    folder, name = ["", *path.split("/")][-2:]
    if _AGENCY_NAME.search(name):
        return False
    words = [word for word in re.split(r"[_\-.]", name) if len(word) > 2 and not re.search(r"\d", word)]
    found = list(_NEVER.finditer("/" + name))
    if len(words) > TELLING_WORDS and found and found[0].start() != 0:
        found = [match for match in found if re.match(r"(?i)[\d_\-]*(\.\w+)?$", ("/" + name)[match.end() :])]
    return bool(found) or bool(_NEVER.search("/" + folder + "/"))


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
