"""Commands for what was published and has to change (amend, takedown), and other forms of it (rehydrate, export)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from engine.core.errors import ConfigError, NestError
from flows import console
from flows.commands.common import ConfigOption, DryRunOption, JsonOption, config_of, next_step, print_json
from flows.commands.publish import snapshot_folder

if TYPE_CHECKING:
    from engine.snapshot.takedown import Receipt

SnapshotArgument = Annotated[str, typer.Argument(help="Folder, name or window of a snapshot.")]


#: Ids that a line names before it only counts.
MOST_NAMED = 5


def register(app: typer.Typer) -> None:
    app.command()(amend)
    app.command()(takedown)
    app.command()(rehydrate)
    app.command()(export)


def amend(
    snapshot: SnapshotArgument,
    row: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the row to correct.")] = None,
    answer: Annotated[str | None, typer.Option("--answer", help="The right name.")] = None,
    mask: Annotated[
        list[str] | None, typer.Option("--mask", help="A mask picture, or NUMBER=FILE for one of several images.")
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Leave the row out.")] = False,
    because: Annotated[str, typer.Option("--because", help="The reason; it is published in the errata.")] = "",
    reviews: Annotated[
        Path | None, typer.Option("--reviews", help="A JSON Lines file of verdicts instead of one row.")
    ] = None,
    from_review: Annotated[
        bool, typer.Option("--from-review", help="What 'nest review' found wrong; the card tells the error.")
    ] = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Correct rows of a snapshot: the next revision, with errata; stored predictions count for it too."""
    from engine.core.store import Home
    from engine.snapshot.amend import Change, mask_change, read_reviews
    from engine.snapshot.manifest import read_manifest
    from engine.snapshot.names import SUPERSEDED
    from flows.stages.correct import carry, check, correct, from_verdicts, ranks

    folder = snapshot_folder(snapshot, config)
    if (row is not None) + (reviews is not None) + from_review != 1:
        raise ConfigError("say which row by its ID, or give --reviews FILE, or --from-review")
    if (reviews is not None or from_review) and (drop or answer is not None or mask):
        raise ConfigError("--answer, --mask and --drop are about one row: give its ID")
    changes = read_reviews(reviews) if reviews is not None else []
    measured = None
    if from_review:
        changes, measured = from_verdicts(config_of(config).home, folder)
    if drop and (answer is not None or mask):
        raise ConfigError("--drop leaves the row out: give it alone, without --answer and --mask")
    if row is not None:
        masks = mask_change(_by_number(mask or ()))
        changes = [Change(row, because, answer=answer, masks=masks, drop=drop)]
    if dry_run:
        left = check(folder, changes, measured=measured)
        if as_json:
            told = [{"id": change.id, "change": change.words(), "because": change.because} for change in changes]
            print_json({"changes": told, "rows": left, "measured": dict(measured or {})})
            return
        for change in changes:
            what = f"the answer becomes '{change.answer}'" if change.answer is not None else change.words()
            console.say(f"  {change.id}: {what or 'nothing'}  (because: {change.because})")
        for label, value in (measured or {}).items():
            console.say(f"  card, {label.lower()}: {value}")
        console.say(f"  {folder.name} would have {left} rows; nothing was written")
        return
    manifest = correct(folder, changes, measured=measured)
    home = Home(folder.parent.parent)
    old = folder.parent / SUPERSEDED / f"{folder.name}.r{int(manifest.revision[1:]) - 1}"
    moved, carried = [], 0
    try:
        moved = ranks(home, folder, old)
        carried = carry(config_of(config), folder, old)
    except NestError as error:
        # the revision stands: whoever reads a failure here would make another one
        console.say(f"what was predicted before cannot be counted for {manifest.revision}: {error}")
    if as_json:
        print_json({"revision": manifest.revision, "rows": manifest.rows, "ranks": [_rank(r) for r in moved]})
        return
    left_out = sum(change.drop for change in changes)
    console.say(
        f"{folder.name} is {manifest.revision} now: {len(changes) - left_out} rows corrected, {left_out} left out, "
        f"{manifest.rows} rows"
    )
    for rank in moved:
        word = "stays" if rank.before == rank.after else f"moves from {rank.before}"
        console.say(
            f"  {rank.name}: {word} {'at' if rank.before == rank.after else 'to'} {rank.after}  "
            f"(gIoU {100 * rank.score_before:.1f} to {100 * rank.score_after:.1f})"
        )
    if carried:
        console.say(f"  the predictions of {carried} segmenters count for {manifest.revision} too")
    # a report is of one revision: the new one has none yet
    short = folder.name.removeprefix("NEST_")
    published = read_manifest(folder).hub_repo
    next_step(f"nest score {short}" + (f", then nest push {short}" if published else ""))


def takedown(
    ids: Annotated[list[str] | None, typer.Option("--id", help="Id of a row.")] = None,
    urls: Annotated[list[str] | None, typer.Option("--url", help="Address of a page or a picture.")] = None,
    domains: Annotated[list[str] | None, typer.Option("--domain", help="A publisher's domain.")] = None,
    entities: Annotated[list[str] | None, typer.Option("--entity", help="Name of a person or product.")] = None,
    images: Annotated[list[str] | None, typer.Option("--image", help="sha256 or perceptual hash of a picture.")] = None,
    repos: Annotated[
        list[str] | None, typer.Option("--repo", help="A further Hub repository, beside those the snapshots name.")
    ] = None,
    local_only: Annotated[bool, typer.Option("--local-only", help="Leave the Hub alone; the receipt says so.")] = False,
    config: ConfigOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove someone or something everywhere: here, and from every revision on the Hub; it stays away afterwards."""
    from datetime import UTC, datetime

    from engine.snapshot.takedown import Wish
    from engine.snapshot.takedown import takedown as remove
    from flows.wiring import hub_token

    settings = config_of(config)
    wish = Wish(tuple(ids or ()), tuple(urls or ()), tuple(domains or ()), tuple(entities or ()), tuple(images or ()))
    receipt = remove(
        settings.home,
        wish,
        repos=tuple(repos or ()),
        token=hub_token(),
        on_hub=not local_only,
        dry_run=dry_run,
        now=datetime.now(UTC),
    )
    if as_json:
        console.out(receipt.line())
    else:
        reports = say_takedown(receipt, str(settings.home))
        for repo, told in sorted(receipt.repositories.items()):
            console.say(f"  {repo}: {told}")
        for failure in receipt.failures:
            console.say(f"  not done: {failure}")
        if receipt.path:
            console.say(f"receipt   {receipt.path}")
        if not dry_run:
            windows = sorted({_window(name) for name in receipt.rows})
            if not receipt.complete:
                next_step("the same command again")
            elif windows:
                next_step(f"nest verify {windows[0]}" + (f", then nest score {windows[0]}" if reports else ""))
            else:
                next_step("nest status")
    if not receipt.complete:
        raise typer.Exit(3)


def rehydrate(
    snapshot: SnapshotArgument,
    out: Annotated[Path, typer.Argument(help="Folder to write.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch the pictures of a snapshot that was published as addresses, and check each against its hash."""
    import asyncio

    from engine.core.store import Home
    from engine.snapshot.rehydrate import rehydrate as fetch
    from engine.web.client import WebClient

    settings = config_of(config)
    folder = snapshot_folder(snapshot, config)

    async def work() -> object:
        async with WebClient(settings.collect, cache=Home(settings.home).cache("http")) as client:
            report = await fetch(folder, out, fetcher=client)
        counts = report.counts()
        if as_json:
            lost = [vars_of(found) for found in report.pictures if found.outcome != "same"]
            print_json({"rows": report.manifest.rows, "found": counts, "lost": lost})
        else:
            console.say(
                f"{out}: {report.manifest.rows} rows; " + ", ".join(f"{n} {word}" for word, n in counts.items())
            )
            for found in report.pictures:
                if found.detail:
                    console.say(f"  {found.row} {found.url}: {found.detail}")
            next_step(f"nest verify {out}")
        return None

    asyncio.run(work())


def export(
    snapshot: SnapshotArgument,
    out: Annotated[Path, typer.Argument(help="Folder to write; it must not be there.")],
    form: Annotated[
        Literal["coco", "reasonseg"], typer.Option("--format", help="coco (run-length masks) or reasonseg (polygons).")
    ] = "coco",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a snapshot in the form of other people's evaluators."""
    from engine.snapshot.export import export_coco, export_reasonseg
    from engine.snapshot.verify import verify as verify_folder

    folder = snapshot_folder(snapshot, config)
    if bad := verify_folder(folder, rows=False):
        raise ConfigError(f"{folder} is not whole ({bad[0].file}: {bad[0].detail}): 'nest verify' tells all")
    made = export_coco(folder, out) if form == "coco" else export_reasonseg(folder, out)
    if as_json:
        print_json({"path": str(made.path), "images": made.images, "masks": made.masks})
    else:
        console.say(f"{made.path}: {made.images} images, {made.masks} masks")


def vars_of(found: object) -> dict[str, str]:
    """A slotted dataclass as plain values."""
    from dataclasses import asdict

    return asdict(found)  # type: ignore[call-overload, no-any-return]


def say_takedown(receipt: Receipt, home: str) -> bool:
    """What went or would go, in words that mean the same in a dry run; whether reports are among it."""
    verb = "would remove" if receipt.dry_run else "removed"
    held = sum(len(found) for found in receipt.rows.values())
    console.say(
        f"{verb} {len(receipt.ids)} rows in {len(receipt.rows)} revisions ({held} entries) "
        f"and {receipt.pictures} pictures"
    )
    if receipt.alike:
        more = f" and {len(receipt.alike) - MOST_NAMED} more" if len(receipt.alike) > MOST_NAMED else ""
        console.say(
            f"  {len(receipt.alike)} of the rows only because their picture is a copy of one that goes or nearly so: "
            f"{', '.join(receipt.alike[:MOST_NAMED])}{more}"
        )
    reports = receipt.files.get("reports", 0)
    if reports:
        again = "would have to be made" if receipt.dry_run else "have to be made"
        console.say(f"  {verb} the reports that show it ({reports} files): they {again} again")
    if not held and not receipt.pictures:
        kept = "a real run keeps what was named out" if receipt.dry_run else "what was named is kept out from now on"
        console.say(f"  nothing in {home} matched: check the spelling; {kept}")
    return bool(reports)


def _window(folder: str) -> str:
    """The window of a snapshot folder's name, put aside or not."""
    name = folder.rpartition("/")[2]
    return re.sub(r"\.r\d+$", "", name, flags=re.ASCII).removeprefix("NEST_")


def _by_number(texts: Sequence[str]) -> dict[int, Path]:
    """Files of masks by the number of their image. Raises `ConfigError` for a number that is given twice."""
    found: dict[int, Path] = {}
    for text in texts:
        number, equals, rest = text.partition("=")
        numbered = bool(equals) and number.isascii() and number.isdecimal() and len(number) < 7
        place, path = (int(number), rest) if numbered else (0, text)
        if not path.strip():
            raise ConfigError(f"--mask '{text}' names no file: give FILE, or NUMBER=FILE")
        if place in found:
            raise ConfigError(f"--mask names two files for the image {place}: give NUMBER=FILE for each image once")
        found[place] = Path(path)
    return found


def _rank(rank: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(rank)  # type: ignore[call-overload, no-any-return]
