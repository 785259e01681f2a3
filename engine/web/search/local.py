"""A search index over collected news and a folder of reference pictures: one SQLite file, no key, no network.

It is built once from finished articles and opened read-only afterwards, so that the same query always finds the
same. Pictures stay in the blob store, the index holds their digests. Ranking is SQLite's BM25 with weights for
title, captions and text; ties go by URL. It knows nothing of questions or answers.

The reference folder has one sub-folder per entity with pictures and a `names.json`:
`{"name": "...", "aliases": ["..."], "type": "person" or "product", "published": "2001-05-04"}`. `published` is the
day from which the pictures were public; like any other document an undated one never passes a cut-off.
"""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from engine.core.images import ImageError, open_image
from engine.core.protocols import Blobs, ImageHit, TextHit
from engine.core.schema import Article
from engine.core.store import write_atomic
from engine.web.search.guard import Blocked, in_time, last_instant, near_copy, read_instant, shingles
from engine.web.urls import url_key

#: Raised whenever the layout or the ranking changes.
VERSION = "1"
#: BM25 weights of title, captions and text (our choice: a caption says most about who is in the picture).
_WEIGHTS = (2.0, 3.0, 1.0)
_PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp"})
_STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "our",
        "she",
        "that",
        "the",
        "their",
        "them",
        "they",
        "this",
        "to",
        "was",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "will",
        "with",
        "image",
        "picture",
        "photo",
        "person",
        "product",
        "shown",
        "pictured",
    ]
)
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


class LocalIndex:
    """The `Search` over one index file. Raises `ConfigError` if there is none or it is of another version."""

    def __init__(self, path: Path, *, blobs: Blobs, name: str = "local") -> None:
        if not path.is_file():
            raise ConfigError(f"there is no search index at {path}: collect the window first")
        self.name = name
        self.path = path
        self._blobs = blobs
        # immutable: nobody writes a finished index, and SQLite then leaves no lock or journal beside it
        self._db = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True, check_same_thread=False)
        try:
            found = self._db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path} is not a search index ({error}): remove it and build it again") from error
        if found is None or found[0] != VERSION:
            raise ConfigError(f"{path} is a search index of another version: remove it and build it again")
        self._copies: dict[int, frozenset[str]] = {}

    @classmethod
    def build(
        cls,
        path: Path,
        articles: Iterable[Article],
        *,
        blobs: Blobs,
        references: Path | None = None,
        name: str = "local",
    ) -> LocalIndex:
        """Write the index of `articles` and the reference folder to `path`, then open it.

        The file appears by one rename; the same articles in any order give the same bytes. Reference pictures are
        copied to the blob store. Raises `ConfigError` for a reference folder that cannot be read.
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
        return cls(path, blobs=blobs, name=name)

    def close(self) -> None:
        """Close the file; the index cannot be asked afterwards."""
        self._db.close()

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        """Articles for the query, best first. `published` of a hit is the latest instant its text may come from."""
        match = _match(query)
        if not match or limit < 1:
            return []
        guard = Blocked(blocked)
        copies = [self._shingles(row[0]) for row in self._docs_of(guard)]
        rows = self._db.execute(
            "SELECT d.id, d.url, d.keys, d.title, d.text, d.captions, d.last, bm25(docs_fts, ?, ?, ?) AS score "
            "FROM docs_fts JOIN docs d ON d.id = docs_fts.rowid WHERE docs_fts MATCH ? ORDER BY score, d.url",
            (*_WEIGHTS, match),
        )
        hits: list[TextHit] = []
        for doc, url, keys, title, text, captions, last, score in rows:
            instant = _instant(last)
            if not in_time(instant, until) or guard.keys.intersection(keys.split("\n")) or url in guard:
                continue
            if any(near_copy(self._shingles(doc), copy) for copy in copies):
                continue
            # captions belong to the page: often they alone name who is pictured
            body = f"{text}\n{captions}" if captions else text
            hits.append(TextHit(url=url, title=title, text=body, published=instant, score=-float(score)))
            if len(hits) == limit:
                break
        return hits

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        """Pictures for the query: those of the reference folder under exactly that name, then others by caption.

        Pictures of blocked pages and of their near copies are left out, and so are those that no longer open.
        """
        if limit < 1 or not query.strip():
            return []
        guard = Blocked(blocked)
        copies = [self._shingles(row[0]) for row in self._docs_of(guard)]
        hits: list[ImageHit] = []
        seen: set[str] = set()
        for url, keys, doc, caption, last, sha256, ext, score in self._pictures(query):
            instant = _instant(last)
            if sha256 in seen or not in_time(instant, until):
                continue
            if guard.keys.intersection(keys.split("\n")) or url in guard:
                continue
            if doc is not None and any(near_copy(self._shingles(doc), copy) for copy in copies):
                continue
            try:
                pixels = open_image(self._blobs.get(sha256, ext)).pixels
            except ImageError:
                continue
            seen.add(sha256)
            hits.append(ImageHit(url=url, caption=caption, image=pixels, published=instant, score=score))
            if len(hits) == limit:
                break
        return hits

    def _pictures(self, query: str) -> Iterator[tuple[Any, ...]]:
        columns = "p.url, p.keys, p.doc, p.caption, p.last, p.sha256, p.ext"
        yield from self._db.execute(
            f"SELECT {columns}, 1.0 FROM names n JOIN pictures p ON p.id = n.picture WHERE n.folded = ? ORDER BY p.url",
            (fold(query),),
        ).fetchall()
        # for a name all of its words must stand in the caption: half a name is another person
        if match := _match_all(query):
            yield from self._db.execute(
                f"SELECT {columns}, -bm25(pictures_fts) AS score FROM pictures_fts "
                "JOIN pictures p ON p.id = pictures_fts.rowid WHERE pictures_fts MATCH ? ORDER BY score DESC, p.url",
                (match,),
            ).fetchall()

    def _docs_of(self, guard: Blocked) -> list[tuple[int]]:
        if not guard.keys:
            return []
        marks = ",".join("?" * len(guard.keys))
        return self._db.execute(
            f"SELECT DISTINCT doc FROM urls WHERE key IN ({marks}) ORDER BY doc", sorted(guard.keys)
        ).fetchall()

    def _shingles(self, doc: int) -> frozenset[str]:
        if doc not in self._copies:
            row = self._db.execute("SELECT text FROM docs WHERE id = ?", (doc,)).fetchone()
            self._copies[doc] = shingles(row[0])
        return self._copies[doc]


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
        last = _text(last_instant(article.published_at, precision=article.date_precision, modified=modified))
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
    for name, aliases, last, file in _references(references):
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


def _references(folder: Path | None) -> Iterator[tuple[str, list[str], str | None, Path]]:
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
                yield name, aliases, _text(instant), file


def _match(query: str) -> str:
    """An FTS5 expression for any of the query's words; words that every text has are left out if others remain."""
    words = list(dict.fromkeys(fold(query).split()))
    telling = [word for word in words if word not in _STOP and (len(word) > 1 or word.isdigit())]
    return " OR ".join(f'"{word}"' for word in telling or words)


def _match_all(name: str) -> str:
    """An FTS5 expression for all words of a name."""
    return " AND ".join(f'"{word}"' for word in dict.fromkeys(fold(name).split()))


def _text(instant: datetime | None) -> str | None:
    return instant.astimezone(UTC).isoformat() if instant is not None else None


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
