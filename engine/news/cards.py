"""What is remembered of a window's articles while all are gone through: columns of numbers, under a kilobyte each.

Texts, addresses and captions stay where they are (on disk, for a large window) and are asked for again where two
articles or photos have to be compared or named.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from engine.core.schema import Article
from engine.news.photogroups import PhotoTable
from engine.news.stories import Sketches, sketch_of

#: Gives the article at a position again.
ArticleOf = Callable[[int], Article]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Cards:
    """Columns over the articles in the order in which they were added."""

    def __init__(self, articles: Iterable[Article] = ()) -> None:
        self.ids: list[str] = []
        self.sketches = Sketches()
        self.photos = PhotoTable()
        self._published_us = array("q")
        self._captioned = array("L")
        for article in articles:
            self.add(article)

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, article: Article) -> None:
        """One more article."""
        published = article.published_at or datetime.max.replace(tzinfo=UTC)
        self.ids.append(article.id)
        self.sketches.add(sketch_of(article.text))
        self.photos.add(article.images)
        self._published_us.append((published - _EPOCH) // _MICROSECOND)
        self._captioned.append(sum(bool(image.caption) for image in article.images))

    def ranked(self, article_of: ArticleOf) -> Sequence[int]:
        """Positions, the article that stays of duplicates first: the earliest, then the one with more captioned
        photos, then by id and address."""
        order = array("L", sorted(range(len(self)), key=self._rank))
        done = array("L")
        for _, group in groupby(order, key=self._rank):
            tied = list(group)
            done.extend(sorted(tied, key=lambda index: article_of(index).url) if len(tied) > 1 else tied)
        return done

    def _rank(self, index: int) -> tuple[int, int, str]:
        return self._published_us[index], -self._captioned[index], self.ids[index]
