"""The `[flows]` section: where and how the graph runs, and whom it tells. Nothing here changes a result."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from engine.core.config.sections.base import Section


class FlowsSection(Section):
    """How the graph runs. Nothing here changes a result."""

    NOT_IN_KEY = frozenset(
        {
            "annotate_deployment",
            "annotate_runs",
            "score_deployment",
            "catch_up_weeks",
            "annotate_wait_s",
            "busy_wait_s",
            "lost_after_s",
            "task_runner",
            "task_runner_options",
            "task_runner_tasks",
            "min_rows",
            "webhook",
            "heartbeat_url",
        }
    )

    annotate_deployment: str = ""
    """Prefect deployment that annotates on GPU workers, e.g. annotate/gpu; empty means in this process."""
    annotate_runs: int = Field(default=1, ge=1, le=64)
    """Runs of that deployment that share the shards: as many as there are GPU workers."""
    score_deployment: str = ""
    """Prefect deployment that scores on GPU workers, e.g. score/score; empty means in this process."""
    catch_up_weeks: int = Field(default=4, ge=1, le=520)
    """How many finished weeks back the catch-up deployment looks for windows that are missing."""
    annotate_wait_s: float = Field(default=3600.0, ge=1)
    """Seconds that a refresh waits for a worker to take an annotate or score run; then it ends with exit code 3."""
    busy_wait_s: float = Field(default=3600.0, ge=0)
    """Seconds that a worker's run waits for another run of the same window; the command refuses at once instead."""
    lost_after_s: float = Field(default=900.0, ge=5)
    """Seconds without a shard held or finished after which such a run counts as lost and its shards are sent again;
    more than the models take to load."""
    task_runner: str = ""
    """Prefect task runner that annotate and score fan out on, as module:Class, e.g. prefect_dask:DaskTaskRunner."""
    task_runner_options: dict[str, Any] = Field(default_factory=dict)
    """What that class takes, e.g. {address = "tcp://10.0.0.2:8786"} or {cluster_kwargs = {n_workers = 2}}."""
    task_runner_tasks: int = Field(default=2, ge=1, le=1024)
    """Tasks that share a stage's shards on the task runner: as many as it has workers."""
    min_rows: int = Field(default=1, ge=0)
    """Fewest rows of a snapshot that is built; a thinner window is finished without one, and says so."""
    webhook: str = ""
    """Address that gets a JSON summary at the end of each run."""
    heartbeat_url: str = ""
    """Address that is fetched after each finished stage (a dead man's switch)."""
