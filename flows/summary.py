"""The end of a run as seen from outside: the artifact in Prefect's pages, and a summary file beside the snapshot."""

from __future__ import annotations

from prefect.artifacts import create_markdown_artifact

from engine.core.schema import canonical_json
from engine.core.store import write_atomic
from flows.notify import tell
from flows.run import Run
from flows.stages import snapshot
from flows.stages.base import Done


def publish(run: Run, steps: list[Done]) -> None:
    """One markdown artifact per window with a stable key, and `summary.json` in the window's folder."""
    from flows.report import summary

    funnel = snapshot.funnel(run)
    lines = [f"# {run.snapshot_name}", "", "| stage | found | kept | left out |", "|---|---:|---:|---|"]
    for step in funnel:
        reasons = ", ".join(f"{count} {code}" for code, count in sorted(step.rejected.items()))
        lines.append(f"| {step.stage} | {step.found} | {step.kept} | {reasons} |")
    lines += ["", "| step | state |", "|---|---|"]
    lines += [f"| {step.stage} | {step.note or ('done' if step.fresh else 'was done')} |" for step in steps]
    create_markdown_artifact(
        "\n".join(lines),
        key=f"funnel-{run.window.label.replace('_', '-')}",
        description=f"Funnel of {run.snapshot_name}",
    )
    told = summary(run)
    write_atomic(run.home.window(run.window) / "summary.json", canonical_json(told).encode())
    tell(run, told)
