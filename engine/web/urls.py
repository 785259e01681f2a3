"""URLs: what is requested, and the key by which two spellings of one article are found to be one.

The key is only for comparing; what is fetched and cited stays the original (http stays http).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urljoin, urlsplit, urlunsplit

from engine.core.schema import Code
from engine.web.errors import FetchError

MAX_URL_CHARS = 4096

#: Parameters that say how a reader came, never which article it is.
_TRACKING = re.compile(
    r"(?i)^(utm_.*|fbclid|gclid|dclid|gbraid|wbraid|msclkid|yclid|twclid|ttclid|igshid|mc_[ce]id|mkt_tok|_hs(enc|mi)|"
    r"cmpid?|campaign(_?id)?|ito|icid|ncid|ocid|sr_share|smid|smtyp|ref|ref_?src|referrer|referer|source|xtor|"
    r"at_(medium|campaign|custom\d*|link_\w+|ptr_\w+|bbc_team|format)|rss|spm|guccounter|guce_\w+|"
    r"traffic_source|wt\.?mc\w*|wt_mc|ns_\w+|s_cid|__twitter_impression|sharetype|fromrss|pk_\w+|"
    r"mtm_\w+|matomo_\w+|sc_(src|cmp|lid|uid|llid|channel|country|campaign)|__source|taid|tpcc|soc_src|soc_trk)$"
)
_AMP_PARAMS = {("outputtype", "amp"), ("amp", "1"), ("amp", ""), ("amp", "true"), ("view", "amp"), ("mode", "amp")}
_MOBILE_LABELS = ("www.", "m.", "amp.", "mobile.", "www2.")
_DEFAULT_FILES = re.compile(r"/(index|default)\.(html?|php|aspx?)$", re.I)


def host_of(url: str) -> str:
    """Lower-case host name of a URL, without port, as punycode; empty if there is none."""
    try:
        return _idna(urlsplit(url.strip()).hostname or "")
    except ValueError:
        return ""


def request_url(url: str) -> str:
    """The URL in the form that is sent: absolute http(s), ASCII host, no fragment, no blanks.

    Raises `FetchError(FETCH_BAD_URL)`.
    """
    text = "".join(url.split()) if any(c in url for c in "\t\r\n") else url.strip()
    if len(text) > MAX_URL_CHARS:
        raise FetchError(Code.FETCH_BAD_URL, f"a URL of {len(text)} characters")
    try:
        parts = urlsplit(text)
        host = _idna(parts.hostname or "")
        port = parts.port
    except ValueError as error:
        raise FetchError(Code.FETCH_BAD_URL, f"not a URL: {text[:200]!r}") from error
    if parts.scheme.lower() not in ("http", "https"):
        raise FetchError(Code.FETCH_BAD_URL, f"the scheme '{parts.scheme}' is not fetched")
    if not host:
        raise FetchError(Code.FETCH_BAD_URL, f"no host in {text[:200]!r}")
    if parts.username or parts.password:
        raise FetchError(Code.FETCH_BAD_URL, "a URL with a password in it")
    name = f"[{host}]" if ":" in host else host
    place = name if port is None else f"{name}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="%:@!$&'()*+,;=~-._/?[]|")
    return urlunsplit((parts.scheme.lower(), place, path, query, ""))


def join(base: str, link: str) -> str:
    """A link of a page as an absolute http(s) URL, or an empty string for anything else."""
    text = link.strip()
    if not text or text.startswith(("data:", "javascript:", "mailto:", "blob:", "about:", "#")):
        return ""
    try:
        found = urljoin(base, text)
        parts = urlsplit(found)
    except ValueError:
        return ""
    return found if parts.scheme in ("http", "https") and parts.netloc else ""


@lru_cache(maxsize=16384)
def url_key(url: str) -> str:
    """The same string for all spellings of one article's address; a URL that cannot be read is its own key.

    Dropped: scheme, default port, `www.`/`m.`/`amp.` labels, AMP path parts and parameters, fragment, trailing
    slash, tracking parameters, order of parameters. Kept: parameters that name the article, the path's case.
    Percent-encoding becomes upper-case UTF-8 in NFC, `%2F` stays what it is.
    """
    try:
        parts = urlsplit(url.strip())
        host = _idna(parts.hostname or "")
        port = parts.port
    except ValueError:
        return url.strip()
    if not host:
        return url.strip()
    for label in _MOBILE_LABELS:
        if host.startswith(label) and host.count(".") >= 2:
            host = host[len(label) :]
            break
    if port is not None and port not in (80, 443):
        host = f"{host}:{port}"
    segments = [_normal(segment) for segment in parts.path.split("/")]
    kept = [segment for segment in segments if segment]
    if kept and kept[0].lower() == "amp":
        kept = kept[1:]
    if kept and kept[-1].lower() == "amp":
        kept = kept[:-1]
    if kept and kept[-1].lower().endswith((".amp", ".amp.html")):
        kept[-1] = re.sub(r"(?i)\.amp(\.html)?$", r"\1", kept[-1])
    path = "/" + "/".join(kept)
    path = _DEFAULT_FILES.sub("", path) or "/"
    pairs = [
        (_normal(name), _normal(value))
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if not _TRACKING.match(name) and (name.lower(), value.lower()) not in _AMP_PARAMS
    ]
    query = "&".join(f"{name}={value}" for name, value in sorted(pairs))
    return f"{host}{path.rstrip('/')}" + (f"?{query}" if query else "")


def _idna(host: str) -> str:
    host = host.rstrip(".").lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"not a host name: {host!r}") from error


def _normal(text: str) -> str:
    """One spelling of a path part or parameter: escapes decoded except the delimiters, NFC, encoded again."""
    out = []
    for number, piece in enumerate(re.split(r"(%[0-9A-Fa-f]{2})", text)):
        if number % 2 and chr(int(piece[1:], 16)) in "/?#&=%+;":  # every second piece is an escape
            out.append(("raw", piece.upper()))
        elif piece:
            out.append(("text", piece))
    joined: list[tuple[str, str]] = []
    for kind, piece in out:
        if joined and kind == "text" and joined[-1][0] == "text":
            joined[-1] = ("text", joined[-1][1] + piece)
        else:
            joined.append((kind, piece))
    done = []
    for kind, piece in joined:
        if kind == "raw":
            done.append(piece)
            continue
        try:
            decoded = unquote_to_bytes(piece).decode("utf-8")
        except UnicodeDecodeError:
            decoded = piece
        done.append(quote(unicodedata.normalize("NFC", decoded), safe="!$'()*,:@~-._+;%"))
    return "".join(done)
