"""The deployments on a real Prefect server with real workers, one of them killed in the middle; its database is
SQLite. `test_server_postgres.py` is the same on Postgres: two files, so that they run side by side."""

from pathlib import Path

import pytest
from support.two_pools import backfill_with_a_killed_worker

pytestmark = [pytest.mark.slow, pytest.mark.system]


@pytest.mark.timeout(2400)
def test_backfill_over_two_pools_with_a_killed_worker(tmp_path: Path) -> None:
    backfill_with_a_killed_worker(tmp_path, None)
