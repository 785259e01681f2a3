"""The deployments on a real Prefect server whose database is PostgreSQL, from the system's packages."""

from pathlib import Path

import pytest
from support.postgres import Postgres, binaries
from support.two_pools import backfill_with_a_killed_worker

pytestmark = [pytest.mark.slow, pytest.mark.system]


@pytest.mark.timeout(2400)
def test_backfill_over_two_pools_with_a_killed_worker(tmp_path: Path) -> None:
    if binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with Postgres() as database:
        backfill_with_a_killed_worker(tmp_path, database)
