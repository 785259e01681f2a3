"""A small finished week that several test files look at; nobody writes into its home."""

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
