"""Writing the file of a local search index: articles, their pictures, and a folder of reference pictures.

The reference folder has one sub-folder per entity with pictures and a `names.json`:
`{"name": "...", "aliases": ["..."], "type": "person" or "product", "published": "2001-05-04"}`. `published` is the
day from which the pictures were public; like any other document an undated one never passes a cut-off.

Asking the index is `local`'s business.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from engine.core.errors import ConfigError
from engine.core.protocols import Blobs
from engine.core.schema import Article
from engine.core.store import write_atomic
from engine.web.search.guard import last_instant, read_instant
from engine.web.urls import url_key

#: Raised whenever the layout or the ranking changes.
VERSION = "1"
_PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
_LAYOUT = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE docs (id INTEGER PRIMARY KEY, url TEXT NOT NULL, keys TEXT NOT NULL, title TEXT NOT NULL,
    captions TEXT NOT NULL, text TEXT NOT NULL, last TEXT);
CREATE TABLE pictures (id INTEGER PRIMARY KEY, url TEXT NOT NULL, keys TEXT NOT NULL, doc INTEGER,
    name TEXT NOT NULL, caption TEXT NOT NULL, last TEXT, sha256 TEXT NOT NULL, ext TEXT NOT NULL);
CREATE TABLE urls (key TEXT NOT NULL, doc INTEGER NOT NULL, PRIMARY KEY (key, doc)) WITHOUT ROWID;
CREATE TABLE names (folded TEXT NOT NULL, picture INTEGER NOT NULL, PRIMARY KEY (folded, picture)) WITHOUT ROWID;
CREATE VIRTUAL TABLE docs_fts USING fts5(title, captions, text, content='docs', content_rowid='id',
    tokenize="porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE pictures_fts USING fts5(name, caption, content='pictures', content_rowid='id',
    tokenize="porter unicode61 remove_diacritics 2");
"""


def write_index(path: Path, articles: Iterable[Article], *, blobs: Blobs, references: Path | None) -> None:
    """Write the index to `path` by one rename; the same articles in any order give the same bytes.

    Reference pictures are copied to the blob store. Raises `ConfigError` for a reference folder that cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "index.sqlite"
        db = sqlite3.connect(draft)
        try:
            _fill(db, articles, blobs=blobs, references=references)
        except sqlite3.OperationalError as error:
            raise ConfigError(f"this Python's SQLite cannot build a text index: {error}") from error
        finally:
            db.close()
        write_atomic(path, draft.read_bytes())


def fold(name: str) -> str:
    """A name without case, accents, punctuation and double spaces, for comparing."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return " ".join(re.findall(r"[^\W_]+", "".join(c for c in plain if not unicodedata.combining(c))))


def _fill(db: sqlite3.Connection, articles: Iterable[Article], *, blobs: Blobs, references: Path | None) -> None:
    db.executescript(_LAYOUT)
    db.execute("INSERT INTO meta VALUES ('version', ?)", (VERSION,))
    picture = 0
    by_id = {article.id: article for article in articles}
    for doc, article in enumerate((by_id[key] for key in sorted(by_id)), 1):
        modified = [w.value for w in article.date_witnesses if w.role == "modified" and w.credible]
        last = stamp(last_instant(article.published_at, precision=article.date_precision, modified=modified))
        keys = sorted({url_key(article.url), url_key(article.canonical_url)})
        captions = "\n".join(dict.fromkeys(image.caption for image in article.images if image.caption))
        db.execute(
            "INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?)",
            (doc, article.url, "\n".join(keys), article.title, captions, article.text, last),
        )
        db.executemany("INSERT INTO urls VALUES (?, ?)", [(key, doc) for key in keys])
        for image in article.images:
            picture += 1
            said = image.caption or image.alt
            own = "\n".join(sorted({*keys, url_key(image.url)}))
            db.execute(
                "INSERT INTO pictures VALUES (?, ?, ?, ?, '', ?, ?, ?, ?)",
                (picture, image.url, own, doc, said, last, image.sha256, image.ext),
            )
    for name, aliases, last, file in references_in(references):
        picture += 1
        url = f"reference:{file.parent.name}/{file.name}"
        ext = file.suffix.lower().lstrip(".").replace("jpeg", "jpg")
        sha256 = blobs.put(file.read_bytes(), ext)
        db.execute(
            "INSERT INTO pictures VALUES (?, ?, ?, NULL, ?, ?, ?, ?, ?)",
            (picture, url, url, name, name, last, sha256, ext),
        )
        folded = sorted({fold(spelling) for spelling in (name, *aliases)} - {""})
        db.executemany("INSERT INTO names VALUES (?, ?)", [(spelling, picture) for spelling in folded])
    db.execute("INSERT INTO docs_fts(docs_fts) VALUES ('rebuild')")
    db.execute("INSERT INTO pictures_fts(pictures_fts) VALUES ('rebuild')")
    db.commit()
    db.execute("VACUUM")


def references_in(folder: Path | None) -> Iterator[tuple[str, list[str], str | None, Path]]:
    """(name, aliases, last instant as text, file) of each picture, in the order of their paths."""
    if folder is None:
        return
    if not folder.is_dir():
        raise ConfigError(f"there is no folder of reference pictures at {folder}: set [annotate] references")
    for told in sorted(folder.glob("*/names.json")):
        try:
            found = json.loads(told.read_text(encoding="utf-8"))
            name, aliases = str(found["name"]), [str(alias) for alias in found.get("aliases", [])]
            published = found.get("published")
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f'{told} cannot be read ({error}): it needs {{"name": "...", "aliases": []}}') from error
        instant = read_instant(str(published)) if published else None
        if published and instant is None:
            raise ConfigError(f"{told}: 'published' is {published!r}, it has to be a day such as 2001-05-04")
        for file in sorted(told.parent.iterdir()):
            if file.suffix.lower() in _PICTURE_SUFFIXES:
                yield name, aliases, stamp(instant), file


def stamp(instant: datetime | None) -> str | None:
    """An instant as the index writes it."""
    return instant.astimezone(UTC).isoformat() if instant is not None else None
