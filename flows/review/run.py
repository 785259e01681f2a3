"""`nest review`: opening a review, its summary, and taking in the verdicts of others."""

from __future__ import annotations

import getpass
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from engine.core.config import Config
from engine.core.errors import ConfigError, RefusedError, TerminalError
from engine.core.schema import SnapshotManifest
from engine.core.store import Home, locked
from engine.snapshot.plain_text import odd_character
from engine.snapshot.verdicts import Reviewed, all_of, append, file_of, read, summarise

DEFAULT_NAME = "reviewer"


def reviewer_name(given: str | None) -> str:
    """The reviewer: as given, else the login's name."""
    if given is not None:
        return given.strip()
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no login, as in a container
        return DEFAULT_NAME


def serve(
    home: Home,
    folder: Path,
    manifest: SnapshotManifest,
    config: Config,
    *,
    reviewer: str,
    port: int = 0,
    ready: Callable[[str], None],
) -> None:
    """Serve the page until it says that it is finished, or until Ctrl-C. `ready` gets the address.

    Raises `ConfigError` for an empty snapshot or a port that is taken, `RefusedError` if this reviewer has a review
    open already.
    """
    from engine.snapshot.reviewed import draw
    from flows.review.rows import prepare
    from flows.review.server import ReviewServer
    from flows.review.session import Session

    path = file_of(home.root, manifest.name, reviewer)
    section = config.review
    drawn = draw(folder, manifest, random_rows=section.random_rows, lowest_margins=section.lowest_margins)
    if not drawn.random:
        raise ConfigError(f"{manifest.name} has no rows: there is nothing to look at")
    path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path.with_name(f".{path.name}.lock")))
        except RefusedError as error:
            raise RefusedError(
                f"{reviewer} has a review of {manifest.name} open already ({error}): end that one (q on its page), or "
                "review under another name with --reviewer NAME"
            ) from error
        work = stack.enter_context(tempfile.TemporaryDirectory(prefix="nest-review-"))
        rows = prepare(folder, manifest, drawn, blobs=home.blobs, into=Path(work))
        session = Session(manifest, rows, path, reviewer)
        try:
            server = ReviewServer(session, port=port)
        except OSError as error:
            raise ConfigError(
                f"port {port} of 127.0.0.1 cannot be used ({error.strerror}): give another --port"
            ) from error
        import threading

        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            ready(server.url)
            server.done.wait()
        finally:
            server.shutdown()
            server.server_close()


def found(home: Path, snapshot: str, *, digest: str = "") -> Reviewed | None:
    """What the reviews of a snapshot say, by default of its latest reviewed revision."""
    return summarise(all_of(home, snapshot), digest=digest)


def take_in(home: Path, manifest: SnapshotManifest, source: Path) -> tuple[int, list[str]]:
    """Copy the verdicts of another reviewer's file to theirs here; returns how many were new, and whose they are.

    Raises `ConfigError` for a file that holds none, or verdicts on another snapshot.
    """
    if not source.is_file():
        raise ConfigError(f"there is no file {source}: give a reviewer's .jsonl")
    verdicts = list(read(source))
    if not verdicts:
        raise ConfigError(f"{source} holds no verdict: give a file that 'nest review' wrote")
    foreign = sorted({verdict.snapshot for verdict in verdicts} - {manifest.name})
    if foreign:
        raise ConfigError(f"{source} is about {', '.join(foreign)}, not about {manifest.name}")
    for verdict in verdicts:
        if odd := odd_character(verdict.answer or ""):
            raise ConfigError(
                f"{source}, row {verdict.sample_id}: the answer {verdict.answer!r} holds {odd}, which cannot be seen "
                "and would be published: take it out of the file"
            )
    new = 0
    for name in dict.fromkeys(verdict.reviewer for verdict in verdicts):
        path = file_of(home, manifest.name, name)
        if path.exists() and path.samefile(source):
            raise TerminalError(f"{source} is {name}'s file here already")
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(f".{path.name}.lock")):
            known: set[str] = {verdict.line() for verdict in read(path)}
            for verdict in verdicts:
                if verdict.reviewer == name and verdict.line() not in known:
                    append(path, verdict)
                    new += 1
    return new, sorted({verdict.reviewer for verdict in verdicts})


def plain(review: Reviewed | None) -> dict[str, object]:
    """A review as JSON values."""
    if review is None:
        return {"sentence": "not reviewed"}
    low_high = review.random.bounds
    return {
        "sentence": review.sentence(),
        "snapshot": review.snapshot,
        "revision": review.revision,
        "rows": review.rows,
        "judged": review.random.judged,
        "wrong": review.random.wrong,
        "share": review.random.share,
        "low": low_high[0] if low_high else None,
        "high": low_high[1] if low_high else None,
        "kinds": dict(review.random.kinds),
        "skipped": review.random.skipped,
        "lowest_margins": {
            "judged": review.margins.judged,
            "wrong": review.margins.wrong,
            "kinds": dict(review.margins.kinds),
        },
        "reviewers": list(review.reviewers),
        "agreement": {"pairs": review.shared, "equal": review.same, "kappa": review.kappa},
        "last": review.last,
    }
