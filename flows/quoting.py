"""Finding what a score string stands for, and sharing what others need to check it: no figure is made here.

Published runs (`report.json` and predictions) lie in each report's folder; pushed, they lie in a dataset repository
beside the data as `published/<digest>-<key>/`, with the leaderboard's static files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engine.core.errors import ConfigError, RefusedError
from engine.core.store import Home
from flows.ranking import is_trial, rank
from flows.stages.reports import left_out
from flows.status.weeks import read_json

if TYPE_CHECKING:
    from engine.core.schema import ScoreReport
    from inference.benchmarks.base import Benchmark
    from inference.report.publish import Published

LEADERBOARD = ("leaderboard.json", "leaderboard.md", "leaderboard.html")
#: Folder in the repository for the published runs.
PUBLISHED = "published"


def runs_of(home: Home) -> Iterator[Path]:
    """Folders of published runs in a home, pilots left out."""
    for path in sorted((home.root / "reports").glob("*/*/published/report.json")):
        if "." not in path.parts[-4]:
            yield path.parent


def shared_files(home: Home, board: Path) -> dict[str, Path]:
    """Path in the repository and local file of the leaderboard and of every published run."""
    found = {name: board / name for name in LEADERBOARD}
    for folder in runs_of(home):
        place = f"{PUBLISHED}/{folder.parts[-3]}-{folder.parts[-2]}"
        found |= {
            f"{place}/{path.relative_to(folder).as_posix()}": path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
    return found


def published_run(text: str, home: Home, where: str, *, endpoint: str | None = None) -> Published:
    """The published run that a score string is of: of several, the one that ranks first.

    `where` is a folder (one run, or many below it), a repository OWNER/NAME[@REVISION], or "" for this home's reports.
    Raises `ConfigError` where there is none.
    """
    from inference.benchmarks.hub import download
    from inference.report.publish import read_published, read_report

    if not where:
        folders = list(runs_of(home))
    elif Path(where).is_dir():
        folders = [
            path.parent for path in sorted(Path(where).rglob("report.json")) if (path.parent / "predictions").is_dir()
        ]
    elif re.fullmatch(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?", where, re.ASCII):
        repo, _, revision = where.partition("@")
        root, _ = download(repo, revision=revision or None, patterns=(f"{PUBLISHED}/*",), endpoint=endpoint)
        folders = [path.parent for path in sorted(root.glob(f"{PUBLISHED}/*/report.json"))]
    else:
        raise ConfigError(f"there are no published runs at {where}: give a folder or OWNER/NAME")
    told = [(folder, read_report(folder / "report.json")) for folder in folders]
    wanted = [
        (*rank(left_out(report).values()), str(folder), folder)
        for folder, report in told
        if report.score_string == text
    ]
    if not wanted:
        if not where:
            refuse_removed(text, home)
        known = sorted({report.score_string for _, report in told})
        hint = f"; there are: {', '.join(known[:5])}" if known else ""
        raise ConfigError(f"no published run of '{text}' in {where or home.root / 'reports'}{hint}")
    return read_published(max(wanted)[-1])


def refuse_removed(text: str, home: Home) -> None:
    """Raises `ConfigError` where a takedown removed this home's reports of the data that a score string names."""
    from inference.metrics.scorestring import parse

    name = parse(text).dataset.rpartition("/")[2]
    for path in sorted((home.root / "receipts").glob("takedown-*.json"), reverse=True):
        told = read_json(path)
        rows = {re.sub(r"\.r\d+$", "", Path(folder).name, flags=re.ASCII) for folder in told.get("rows", {})}
        if name in rows and told.get("files", {}).get("reports") and not told.get("dry_run"):
            raise ConfigError(
                f"the reports of {name} were removed here by the takedown of {str(told.get('at'))[:10]} ({path}): "
                f"they showed what was taken down: 'nest score {name}' scores what is left under a string of its own; "
                "a run that was published elsewhere is replayed with --published OWNER/NAME"
            )


def refuse_trial(report: ScoreReport) -> None:
    """Raises `RefusedError` for a report that nobody should quote: of a pilot or another part of a snapshot, or with a
    segmenter that left out more than a tenth."""
    name, _, part = report.dataset.partition(".")
    if name.startswith("NEST_") and part:
        raise RefusedError(f"the report is of {report.dataset}, a part of {name}: score the whole to quote it")
    for segmenter, (missing, pairs) in left_out(report).items():
        if is_trial(missing, pairs):
            raise RefusedError(
                f"{segmenter} says nothing of {missing} of {pairs} pairs of {report.dataset}: that was a trial, its "
                "figures are none of the snapshot; score predictions of all of them to quote it"
            )


def pinned_data(text: str, home: Home, *, endpoint: str | None = None) -> tuple[Benchmark, str]:
    """The data that a score string names, and a remark if they are not at the pinned revision any more.

    From the Hub by commit; where a takedown has removed that commit, the head. A name without an owner is looked for
    among this home's snapshots and their earlier revisions. Raises `ConfigError` where there are none.
    """
    from engine.snapshot.names import SUPERSEDED
    from inference.benchmarks.nest import load
    from inference.metrics.scorestring import parse

    wanted = parse(text)
    if "/" in wanted.dataset:
        try:
            return load(
                f"{wanted.dataset}@{wanted.revision}" if wanted.revision else wanted.dataset, endpoint=endpoint
            ), ""
        except ConfigError as error:
            if "has no revision" not in str(error):
                raise
        return load(
            wanted.dataset, endpoint=endpoint
        ), f"{wanted.dataset} no longer has {wanted.revision[:12]}: its head"
    root = home.snapshot("x").parent
    places = [root / wanted.dataset, root / SUPERSEDED / f"{wanted.dataset}.{wanted.revision}"]
    found = [load(place) for place in places if place.is_dir()]
    if not found:
        raise ConfigError(f"there is no snapshot {wanted.dataset} in {home.root}: say where the data are with --data")
    exact = [one for one in found if one.digest.startswith(wanted.digest)]
    return (exact[0], "") if exact else (found[0], f"{wanted.dataset} here is {found[0].revision}")
