"""Push: the snapshot to the Hub, where the configuration names a repository. Scoring never waits for it."""

from __future__ import annotations

from pathlib import Path

from engine.core.errors import RefusedError
from engine.core.store import StageDir, sha256_file, stage_key
from flows.run import Run
from flows.stages import snapshot
from flows.stages.base import Done


def repository(run: Run) -> str:
    """owner/name for this window's snapshot, "" if nothing is to be pushed."""
    return run.config.hub.repo.replace("{name}", run.snapshot_name) if run.config.hub.repo else ""


def place(run: Run) -> StageDir | None:
    """Where it is noted that this very snapshot is on the Hub; None if there is nothing to push."""
    record = snapshot.folder(run) / "snapshot.json"
    if not repository(run) or not record.is_file():
        return None
    key = stage_key("push", "1", {"repo": repository(run)}, [sha256_file(record)])
    return run.home.stage(run.window, "push", key)


def finished(run: Run) -> bool:
    where = place(run)
    return where is not None and where.finished


def do(run: Run) -> Done:
    """Push the window's snapshot unless that is done or not wanted."""
    repo = repository(run)
    folder = snapshot.folder(run)
    made = snapshot.manifest(folder)
    if made is None:
        return Done("push", "", "", 0, 0, False, "no snapshot, nothing to push")
    if not repo:
        return Done("push", made.key, str(folder), made.rows, 0, False, "no [hub] repo, nothing is pushed")
    if run.config.collect.limit is not None:
        return Done("push", made.key, str(folder), made.rows, 0, False, "a pilot is never pushed")
    where = place(run)
    assert where is not None
    if where.finished:
        return Done("push", made.key, repo, made.rows, made.rows, False)
    done, word, state, url = publish(run, folder, repo)
    note(run, made.rows, state=state)
    return Done("push", made.key, repo, made.rows, made.rows, done, f"{word} {url}".strip())


def publish(run: Run, folder: Path, repo: str) -> tuple[bool, str, str, str]:
    """Push openly, privately (`[hub] hold`) or sealed, as the configuration says. Returns whether anything was done,
    a word on how, the state for the record, and where it is."""
    from engine.snapshot.hub import push
    from flows import sealed
    from flows.wiring import hub_token

    opens = sealed.opens_on(run.config, run.window, run.snapshot_name, now=sealed.today())
    if opens is not None:
        told = sealed.push(
            run.config, folder, repo=repo, opens=opens, token=hub_token(), private=run.config.hub.private
        )
        return told.done != "nothing to do", f"sealed until {opens}", "sealed", repo
    held = run.config.hub.hold and not released(run)
    if held:
        refuse_public(repo)
    result = push(folder, repo=repo, token=hub_token(), private=run.config.hub.private or held, opens_seal=_opened(run))
    word = f"private until 'nest release {run.window.label}'" if held else ""
    return result.done == "pushed", word, "held" if held else "", result.url


def note(run: Run, rows: int, *, state: str = "") -> None:
    """Note that the window's present snapshot is on the Hub: openly, "held" (private) or "sealed"."""
    where = place(run)
    if where is not None:
        with where.lock():
            where.commit([], [], stage="push", found=rows, extra={"repo": repository(run), "state": state})


def released(run: Run) -> bool:
    """Whether somebody released this window's repository before."""
    return released_mark(run).is_file()


def released_mark(run: Run) -> Path:
    return run.home.window(run.window) / "push" / "released.json"


def refuse_public(repo: str) -> None:
    """Raise `RefusedError` if a repository that is to be held back can be seen by all already."""
    from engine.snapshot.hub_client import hub
    from engine.snapshot.hub_sealed import is_private
    from flows.wiring import hub_token

    with hub(hub_token(), None) as api:
        if is_private(api, repo) is False:
            raise RefusedError(f"{repo} is public, [hub] hold cannot hold it back: make it private or choose another")


def _opened(run: Run) -> bool:
    from flows import sealed

    kept = sealed.read(run.home.root, run.snapshot_name)
    return kept is not None and kept.opened_at is not None
