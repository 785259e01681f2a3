"""`nest ask` against an address where no model is: nothing is kept as finished, and the user is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.llm_server import Scripted, completion_body
from support.week import WINDOW, Week, asked

PORTAL = Scripted(body="<html>Please log in</html>", headers={"content-type": "text/html"})


def finished(home: Path) -> list[Path]:
    """What of the stage is written down as done, shards included."""
    return list(home.glob("windows/*/ask/*/**/manifest.json"))


@pytest.mark.parametrize("answer", [PORTAL, Scripted(body=completion_body(None))])
def test_a_portal_is_no_model(answer: Scripted, collected: Callable[..., Week], undisturbed: Week) -> None:
    """Shards of one article: none of them is finished by what a portal says."""
    with collected(**{"llm.backoff_s": 0.3, "ask.batch_articles": 1}) as week:
        week.llm.reply = lambda body: answer
        stopped = week.nest("ask", "--window", WINDOW, code=3)
        assert "not with chat completions" in stopped.stderr
        assert "base_url" in stopped.stderr
        assert finished(week.home) == []
        week.llm.reply = None
        week.nest("ask", "--window", WINDOW)
        assert len(finished(week.home)) > 3
    found, expected = asked(week.home), asked(undisturbed.home)
    assert {name: found[name] for name in found if "/" not in name} == {
        name: expected[name] for name in expected if "/" not in name
    }


def test_silence_is_told_on_the_console(collected: Callable[..., Week]) -> None:
    settings = {"llm.backoff_s": 0.3, "llm.patience_s": 3.0}
    with collected(**settings) as week:
        week.llm.reply = lambda body: Scripted(drop=True)
        stopped = week.nest("ask", "--window", WINDOW, code=3)
    lines = [line for line in stopped.stderr.splitlines() if "does not answer" in line]
    assert len(lines) == 1
    assert week.llm.url in lines[0]
    assert "giving up in" in lines[0]
