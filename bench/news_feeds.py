"""feedparser's own test feeds through the feed reader: no exception, and dates no worse than feedparser's.

    python -m bench.news_feeds CORPUS

CORPUS is a checkout of feedparser's repository; nothing of it is kept. For every entry that feedparser dates, our date
is compared with its `published_parsed` or `updated_parsed`. Most of the test entries have no title or no link and are
no entries for us; so every date that stands in any of them is also read alone ("alone same", "alone none", "alone
other").
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engine.news.dates import parse_date
from engine.news.feedread import read_feed


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    found = parser.parse_args(argv)
    import feedparser

    warnings.simplefilter("ignore")
    files = sorted(path for path in (found.corpus / "tests").rglob("*.xml") if path.is_file())
    counts: Counter[str] = Counter()
    other: list[str] = []
    for path in files:
        body = path.read_bytes()
        feed = read_feed(body, "https://example.org/feed")
        counts["problem" if feed.problem else "read"] += 1
        counts["entries"] += len(feed.entries)
        ours = {entry.url: entry for entry in feed.entries}
        try:
            parsed = feedparser.parse(body)
        except Exception as error:  # noqa: BLE001 - the peer's failures are counted, whatever they are
            counts[f"feedparser raised {type(error).__name__}"] += 1
            continue
        for entry in parsed.get("entries", ()):
            for key in ("published", "updated", "created"):
                written, read = str(dict.get(entry, key) or ""), _stamp(dict.get(entry, f"{key}_parsed"))
                if written and read is not None:
                    own = parse_date(written)
                    verdict = "none" if own is None else "same" if own.value == read else "other"
                    counts[f"alone {verdict}"] += 1
                    if verdict != "same":
                        other.append(f"  {path.name}: {written!r}: feedparser {read}, ours {own and own.value}")
            theirs = _theirs(entry)
            mine = ours.get(str(entry.get("link", "")))
            if theirs is None or mine is None:
                continue
            values = [w.value for w in mine.witnesses]
            verdict = "same" if theirs in values else "none" if not values else "other"
            counts[f"date {verdict}"] += 1
            if verdict != "same":
                written = entry.get("published") or entry.get("updated")
                other.append(f"  {path.name}: {written!r}: feedparser {theirs}, ours {values}")
    print(f"{len(files)} files: {dict(counts)}")
    print("\n".join(other[:40]))


def _theirs(entry: Any) -> datetime | None:
    return _stamp(dict.get(entry, "published_parsed") or dict.get(entry, "updated_parsed"))


def _stamp(parsed: Any) -> datetime | None:
    try:
        year, month, day, hour, minute, second = parsed[:6] if parsed else (0, 0, 0, 0, 0, 0)
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


if __name__ == "__main__":
    main()
