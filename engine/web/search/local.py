"""A search index over collected news and a folder of reference pictures: one SQLite file, no key, no network.

It is built once from finished articles and opened read-only afterwards, so that the same query always finds the
same. Pictures stay in the blob store, the index holds their digests. Ranking is SQLite's BM25 with weights for
title, captions and text; ties go by URL. It knows nothing of questions or answers.

How the file is made is in `index_file`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError
from engine.core.images import ImageError, open_image
from engine.core.protocols import Blobs, ImageHit, TextHit
from engine.core.schema import Article
from engine.web.search.guard import Blocked, in_time, near_copy, shingles
from engine.web.search.index_file import VERSION, fold, write_index

__all__ = ["VERSION", "LocalIndex", "fold"]

#: BM25 weights of title, captions and text (our choice: a caption says most about who is in the picture).
_WEIGHTS = (2.0, 3.0, 1.0)
#: Words that every text and every question has.
_STOP = """a an and are as at be been by did do does for from had has have he her his in into is it its of on or our
she that the their them they this to was were what when where which who whom whose will with image picture photo person
product shown pictured"""


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

        The same articles in any order give the same bytes. Raises `ConfigError` for a reference folder that cannot be
        read.
        """
        write_index(path, articles, blobs=blobs, references=references)
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


def _match(query: str) -> str:
    """An FTS5 expression for any of the query's words; words that every text has are left out if others remain."""
    words = list(dict.fromkeys(fold(query).split()))
    common = frozenset(_STOP.split())
    telling = [word for word in words if word not in common and (len(word) > 1 or word.isdigit())]
    return " OR ".join(f'"{word}"' for word in telling or words)


def _match_all(name: str) -> str:
    """An FTS5 expression for all words of a name."""
    return " AND ".join(f'"{word}"' for word in dict.fromkeys(fold(name).split()))


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
