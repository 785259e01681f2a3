"""Push: the snapshot to the Hub, where the configuration names a repository. Scoring never waits for it."""

from __future__ import annotations

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
    from engine.snapshot.hub import push
    from flows.wiring import hub_token

    result = push(folder, repo=repo, token=hub_token(), private=run.config.hub.private)
    with where.lock():
        where.commit([], [], stage="push", found=made.rows, extra={"repo": repo})
    return Done("push", made.key, repo, made.rows, made.rows, result.done == "pushed", result.url)
