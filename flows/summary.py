"""The end of a run as seen from outside: artifacts in Prefect's pages, a summary file beside the snapshot, and whoever
is to be told. Nothing here is part of a digest."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from engine.core.schema import canonical_json
from engine.core.store import sha256_bytes, write_atomic
from flows.notify import tell
from flows.plan import states
from flows.run import Run
from flows.stages import push, reports, score, snapshot
from flows.stages.base import Done

PACKAGES = ("nest-data-engine", "prefect", "numpy", "pyarrow", "datasets", "torch", "transformers")


def publish(run: Run, steps: list[Done]) -> None:
    """Artifacts with stable keys per window, `NEST_<window>.run.json` beside the snapshot, and the webhook."""
    told = record(run, steps)
    text = canonical_json(told).encode()
    write_atomic(run.home.window(run.window) / "summary.json", text)
    write_atomic(path_of(run), text)
    _artifacts(run, steps, told)
    tell(run, told)


def path_of(run: Run) -> Path:
    """Where the summary of the window's last run lies: beside the snapshot's folder."""
    place = snapshot.folder(run)
    return place.with_name(f"{place.name}.run.json")


def record(run: Run, steps: list[Done]) -> dict[str, Any]:
    """What happened: result, funnel, each stage's key, time and cost, versions, host, the digest of the settings."""
    from flows.report import summary

    spent = {state.stage: _spent(state.path) for state in states(run) if state.path is not None}
    stages: list[dict[str, Any]] = [
        {
            "stage": step.stage,
            "key": step.key,
            "fresh": step.fresh,
            "found": step.found,
            "kept": step.kept,
            "note": step.note,
            **spent.get(step.stage, {}),
        }
        for step in steps
    ]
    settings = run.config.model_dump(mode="json")
    return {
        **summary(run),
        "stages": stages,
        "usd": round(sum(stage.get("usd", 0.0) for stage in stages), 6),
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "settings": sha256_bytes(canonical_json(settings).encode())[:16],
        "versions": _versions(),
    }


def _spent(path: Path) -> dict[str, float]:
    """Seconds and US dollars of a stage, from its `run.json`."""
    try:
        told = json.loads((path / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = {"seconds": float(told.get("seconds", 0.0))}
    usd = told.get("ledger", {}).get("total", {}).get("usd")
    return found if usd is None else {**found, "usd": float(usd)}


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # an extra that is not installed, or a source tree without an installation
    return found


def _artifacts(run: Run, steps: list[Done], told: dict[str, Any]) -> None:
    key = run.snapshot_name.lower().replace("_", "-").replace(".", "-")
    lines = [f"# {run.snapshot_name}", "", "| stage | found | kept | left out |", "|---|---:|---:|---|"]
    for step in snapshot.funnel(run):
        reasons = ", ".join(f"{count} {code}" for code, count in sorted(step.rejected.items()))
        lines.append(f"| {step.stage} | {step.found} | {step.kept} | {reasons} |")
    lines += ["", "| step | state | seconds | US dollars |", "|---|---|---:|---:|"]
    for stage, done in zip(told["stages"], steps, strict=True):
        state = done.note or ("done" if done.fresh else "was done")
        lines.append(f"| {done.stage} | {state} | {stage.get('seconds', '')} | {stage.get('usd', '')} |")
    create_markdown_artifact("\n".join(lines), key=f"funnel-{key}", description=f"Funnel of {run.snapshot_name}")
    repository = push.repository(run)
    if repository and push.finished(run):
        link = f"{os.environ.get('HF_ENDPOINT') or 'https://huggingface.co'}/datasets/{repository}"
        create_link_artifact(link, key=f"snapshot-{key}", description=f"{run.snapshot_name} on the Hub")
    scores = [
        {
            "segmenter": row["segmenter"],
            "truth": row["truth"],
            **{name: figure["value"] for name, figure in row["figures"].items()},
        }
        for row in reports.figures(score.folder(run))
    ]
    if scores:
        create_table_artifact(scores, key=f"scores-{key}", description=f"Scores on {run.snapshot_name}")
