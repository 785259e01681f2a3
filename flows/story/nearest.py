"""What an unknown id may have meant: the only name that begins so, else names that begin, contain, or look like it."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from flows.story.gather import names_of, records, row_places

ROW = "row: "
#: A beginning this long stands for the one name that it fits.
ENOUGH = 6
#: Names compared letter by letter at most.
COMPARED = 20_000


def known_names(home: Path) -> dict[str, str]:
    """All names of a home with a word on what each is; published rows with their answer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, str] = {}
    for folder, _ in row_places(home):
        for path in sorted((folder / "data").glob("*.parquet")):
            try:
                for row in pq.read_table(path, columns=["id", "answer"]).to_pylist():
                    found.setdefault(row["id"], f"{ROW}{row['answer']}")
            except (OSError, pa.ArrowException):
                continue
    for window in sorted(path.name for path in home.glob("windows/*")):
        for chapter in records(home, window):
            for name in names_of(chapter):
                found.setdefault(name, str(chapter.record.get("answer") or chapter.kind))
    return found


def only_one(home: Path, item: str) -> str | None:
    """The one known name that begins with `item`, None if there are none or several."""
    if len(item) < ENOUGH:
        return None
    found = [name for name in known_names(home) if name.startswith(item)]
    return found[0] if len(found) == 1 else None


def rows_about(home: Path, item: str) -> dict[str, str]:
    """Published rows whose answer has this word or these words, in whatever case: id to answer."""
    wanted = re.compile(rf"(?<!\w){re.escape(' '.join(item.split()))}(?!\w)", re.IGNORECASE)
    known = known_names(home)
    about = {name: told.removeprefix(ROW) for name, told in known.items() if told.startswith(ROW)}
    return {name: answer for name, answer in sorted(about.items()) if wanted.search(answer)}


def nearest(home: Path, item: str, *, count: int = 3) -> str:
    """Half a sentence that names what is most alike."""
    known = known_names(home)
    if not known:
        return "nothing is there yet"
    low = item.casefold()
    begin = sorted(name for name in known if name.casefold().startswith(low))
    inside = sorted(name for name in known if low in name.casefold() and name not in begin) if len(low) > 3 else []
    about = sorted(name for name, told in known.items() if len(low) > 2 and low in told.casefold())
    start = sorted((name for name in known if _shared(name, item) >= 3), key=lambda name: (-_shared(name, item), name))
    alike = difflib.get_close_matches(item, sorted(known)[:COMPARED], n=count, cutoff=0.5)
    found = list(dict.fromkeys([*begin[:count], *inside[:count], *about[:count], *start[:count], *alike]))[:count]
    if not found:
        return "nothing is like it"
    return "the nearest are " + ", ".join(f"{name} ({known[name]})" for name in found)


def _shared(one: str, other: str) -> int:
    """How many characters two names share at their beginning; addresses share theirs with all others."""
    if "://" in one:
        return 0
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
