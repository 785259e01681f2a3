"""The page in a real browser, opened as a file: sorting, filters, overlays, keys; no error, no request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.browser import Browser, browser, missing
from support.evaluation import WINDOW, predict, write_snapshot

from engine.core.schema import TraceStep
from inference.benchmarks.nest import load
from inference.metrics.score import score
from inference.report.write import write

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(missing()), reason=missing() or "there is a browser")]
ENTER, ESCAPE, RIGHT, TAB = "\ue007", "\ue00c", "\ue014", "\ue004"
ROSE = "rose:portable"
PAINTED = """
const c = document.querySelector('#cards canvas');
if (!c || !c.width) return null;
const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
const seen = new Set();
for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) seen.add(`${d[i]},${d[i + 1]},${d[i + 2]}`);
return [...seen].sort();
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    masks = write_snapshot(folder / WINDOW, rows=90, size=(90, 120))
    step = TraceStep(module="irag", input="who won?", output="Name 4", values={"pages": "3"})
    predictions = {
        "portable": [
            predict(name, [np.roll(mask, place % 30, axis=1) if place != 7 else None], segmenter="portable")
            for place, (name, mask) in enumerate(masks.items())
        ],
        ROSE: [
            predict(name, [mask], segmenter=ROSE, answer=f"Name {place}").model_copy(update={"trace": (step,)})
            for place, (name, mask) in enumerate(masks.items())
        ],
    }
    benchmark = load(folder / WINDOW)
    report = score(benchmark, predictions, resamples=100, notes=["a note"])
    return write(report, folder / "out", benchmark=benchmark, predictions=predictions).html


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def window(page: Path, chromium: Browser) -> Browser:
    chromium.open(page)
    chromium.run("document.getElementById('gallery').scrollIntoView()")
    chromium.wait("return document.querySelectorAll('#cards .card img').length > 0")
    return chromium


def test_tables_sort(window: Browser) -> None:
    names = "return [...document.querySelectorAll('table')[0].tBodies[0].rows].map(r => r.cells[0].textContent.trim())"
    head = (
        "[...document.querySelectorAll('table')[0].tHead.rows[1].cells].findIndex(c => c.textContent.includes('Acc.'))"
    )
    giou = "document.querySelectorAll('table')[0].querySelectorAll('.groups ~ tr th .sort')"
    assert window.run(f"return {head}") == 2
    overall = window.run(f"const b = {giou}; b[7].focus(); return b[7].textContent")
    assert overall == "gIoU"
    window.press(ENTER)
    assert window.run(names)[:2] == [ROSE, "LISA-7B + ROSE (quoted)"]
    window.press(ENTER)
    assert window.run(names)[0] == "all-empty"
    assert window.run("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "ascending"


def test_quoted_rows_can_be_shown(window: Browser) -> None:
    visible = "return [...document.querySelectorAll('tr.quoted')].filter(r => r.offsetParent !== null).length"
    assert window.run(visible) == 0
    window.run("document.getElementById('quoted').click()")
    assert window.run(visible) >= 9


def test_filters_and_order(window: Browser) -> None:
    choose = (
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    )
    count = "return document.getElementById('count').textContent"
    first = "return document.querySelector('#cards .card .text').textContent"
    assert window.run(count) == "90 of 90 shown"
    assert "no box" in window.run(first)
    window.run(choose, "f-status", "lost")
    assert window.run(count) == "1 of 90 shown"
    assert "s007" in window.run(first)
    window.run(choose, "f-status", "")
    window.run(choose, "f-order", "best")
    assert "IoU 1.000" in window.run(first)
    window.run(choose, "f-part", '["domain","Sports"]')
    assert window.run(count) == "45 of 90 shown"
    window.run(
        "const t = document.getElementById('f-text'); t.value = 'prize 11?'; t.dispatchEvent(new Event('input'))"
    )
    assert window.run(count) == "1 of 90 shown"


def test_overlays_are_painted(window: Browser) -> None:
    order = "const s = document.getElementById('f-order'); s.value = 'id'; s.dispatchEvent(new Event('change'))"
    window.run(order)
    window.run("const t = document.getElementById('f-text'); t.value = 's010'; t.dispatchEvent(new Event('input'))")
    blue, orange, green = "30,144,255", "255,122,0", "47,191,79"
    assert window.wait(PAINTED) == sorted([blue, green, orange])
    for mode, colours in (("truth", [blue]), ("pred", [orange]), ("none", [])):
        window.run("document.querySelector(`input[value=${arguments[0]}]`).click()", mode)
        assert window.run(PAINTED) == colours


def test_everything_by_keyboard(window: Browser) -> None:
    window.run("document.querySelector('.card button').focus()")
    window.press(ENTER)
    window.wait("return document.getElementById('view').open")
    assert window.run("return document.querySelectorAll('#view-body h3').length") == 2
    assert "pages: 3" in window.run("return document.getElementById('view-body').textContent")
    title = window.run("return document.getElementById('view-title').textContent")
    window.press(RIGHT)
    assert window.run("return document.getElementById('view-title').textContent") != title
    window.press(ESCAPE)
    window.wait("return !document.getElementById('view').open")
    reached = set()
    window.run("document.querySelector('.skip').focus()")
    for _ in range(60):
        window.press(TAB)
        reached.add(window.run("return document.activeElement.id || document.activeElement.className"))
    assert {"f-segmenter", "f-truth", "f-order", "f-status", "f-part", "f-text", "sort", "scroll"} <= reached


def test_only_what_is_looked_at_is_decoded(window: Browser) -> None:
    window.run("window.scrollTo(0, 0)")
    shown = "return document.querySelectorAll('#cards .card').length"
    assert window.run(shown) == 48
    window.run("window.scrollTo(0, document.body.scrollHeight)")
    window.wait("return document.querySelectorAll('#cards .card').length === 90")
    assert window.run("return document.querySelectorAll('#cards img').length") < 90


def test_nothing_is_requested_and_nothing_fails(window: Browser) -> None:
    window.run("window.scrollTo(0, document.body.scrollHeight)")
    assert [entry for entry in window.log() if entry["level"] == "SEVERE"] == []
    outside = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))"
    assert window.run(outside) == []


def test_picture(window: Browser, tmp_path: Path) -> None:
    window.run("document.getElementById('gallery').scrollIntoView()")
    window.wait(PAINTED)
    window.picture(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000
