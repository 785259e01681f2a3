"""A small finished week that several test files look at; nobody writes into its home."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.week import SMALL, WINDOW, Week


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Week:
    """Collect to snapshot by the model-written path, never interrupted. Copy its home before changing it."""
    with Week(tmp_path_factory.mktemp("undisturbed"), overrides=SMALL) as week:
        for stage in ("collect", "ask", "annotate", "snapshot"):
            week.nest(stage, "--window", WINDOW)
        assert week.llm.answered == len(week.llm.seen) > 3
    return week


@pytest.fixture
def collected(undisturbed: Week, tmp_path: Path) -> Callable[..., Week]:
    """Weeks (with settings of their own) in whose homes the same news lie and nothing else is done."""

    def make(**settings: object) -> Week:
        week = Week(tmp_path, overrides={**SMALL, **settings})
        done = shutil.ignore_patterns("llm", "ledger", "ask", "annotate", "snapshot", "snapshots")
        shutil.copytree(undisturbed.home, week.home, ignore=done)
        return week

    return make
