"""The review page in a real browser, by keys alone: 150 random rows and the lowest margins, killed in the middle."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.browser import Browser, browser, missing
from support.snapshots import snapshot

from engine.snapshot.manifest import read_manifest
from engine.snapshot.verdicts import all_of, standing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
NAME = "NEST_261123_261129"
ROWS = 210
ROOT = Path(__file__).resolve().parents[3]
BACKSPACE, ENTER, ESCAPE = "\ue003", "\ue007", "\ue00c"
VERDICTS = {"r": "right", "a": "wrong_answer", "e": "wrong_entity", "m": "bad_mask", "p": "private_person", "s": "skip"}
#: What is said of the rows, in the order in which they are shown.
PLAN = {3: "a", 10: "m", 40: "e", 75: "s", 90: "p", 120: "a", 149: "m", 155: "m", 160: "e"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("review")
    (root / "nest.toml").write_text('home = "home"\n')
    snapshot(root / "home" / "snapshots" / NAME, ROWS, width=320, height=240)
    (root / "home" / "snapshots" / "blobs").rename(root / "home" / "blobs")
    return root


def _nest(root: Path, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *words], cwd=root, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done


@contextmanager
def reviewing(root: Path, reviewer: str = "ada") -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The command as a process of its own, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "review", NAME, "--reviewer", reviewer],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def _press(page: Browser, *keys: str) -> None:
    """Press keys, and wait until the page has settled."""
    before = page.run("return Number(document.body.dataset.settled || 0)")
    page.press(*keys)
    page.wait(f"return Number(document.body.dataset.settled || 0) > {before}")


def _at(page: Browser) -> int:
    return int(page.run("return document.body.dataset.row"))


def _judge(page: Browser, upto: int) -> None:
    while (number := _at(page)) < upto:
        key = PLAN.get(number, "r")
        if key == "a":
            page.press("a")
            assert page.run("return document.activeElement.id") == "better-answer"
            _press(page, *("Ada" if number == 3 else ""), ENTER)
        else:
            _press(page, key)
        if number == upto - 1:
            break


def test_150_rows_by_keys_closed_in_the_middle_and_resumed(home: Path, tmp_path: Path) -> None:
    with reviewing(home) as (process, url), browser(tmp_path, width=1280, height=860) as page:
        page.visit(url)
        page.wait("return document.body.dataset.row === '0'")
        _judge(page, 12)
        # taken back, and said again
        _press(page, "u")
        assert _at(page) == 11
        _press(page, "m")
        _press(page, BACKSPACE)
        _press(page, "r")
        # the form for the right name can be left
        page.press("a")
        page.press(ESCAPE)
        assert page.run("return document.getElementById('better').hidden")
        # looking on and back says nothing
        _press(page, "n")
        _press(page, "b")
        # mask and boxes can be switched
        page.press("o")
        assert page.run("return getComputedStyle(document.querySelector('img.mask')).visibility") == "hidden"
        page.press("o")
        page.press("x")
        assert page.run("return getComputedStyle(document.querySelector('svg')).visibility") == "visible"
        _judge(page, 71)
        page.picture(tmp_path / "middle.png")
        shown = page.run("return [...document.images].map(i => i.naturalWidth)")
        assert shown == [320, 320]
        boxes = page.run("return [...document.querySelectorAll('.shot *')].map(i => i.getBoundingClientRect().width)")
        assert min(boxes[:2]) >= 320
        assert [entry for entry in page.log() if entry["level"] == "SEVERE"] == []
        process.kill()
    said = standing(all_of(home / "home", NAME)["ada"])
    assert len(said) == 71
    with reviewing(home) as (process, url), browser(tmp_path, width=1280, height=860) as page:
        page.visit(url)
        page.wait("return document.body.dataset.row === '71'")
        assert "71 of 150" in page.run("return document.getElementById('random').textContent")
        _judge(page, 200)
        assert page.run("return document.getElementById('random').textContent") == "150 of 150"
        assert page.run("return document.getElementById('margin').textContent") == "50 of 50"
        page.press("q")
        process.wait(timeout=20)
        assert process.returncode == 0
    verdicts = all_of(home / "home", NAME)["ada"]
    said = standing(verdicts)
    assert len(said) == 200
    assert Counter(v.stratum for v in said.values()) == {"random": 150, "lowest_margin": 50}
    wanted = Counter(VERDICTS[PLAN.get(number, "r")] for number in range(200))
    assert Counter(v.verdict for v in said.values()) == wanted
    assert len({v.sample_id for v in verdicts}) == 200


def test_the_verdicts_change_the_revision_and_the_card(home: Path) -> None:
    """After the review above: 6 of 149 wrong, one skipped; one wrong answer has a better one."""
    told = json.loads(_nest(home, "review", NAME, "--summary", "--json").stdout)
    assert (told["judged"], told["wrong"], told["skipped"]) == (149, 6, 1)
    assert told["kinds"] == {"bad_mask": 2, "private_person": 1, "wrong_answer": 2, "wrong_entity": 1}
    assert told["lowest_margins"] == {"judged": 50, "wrong": 2, "kinds": {"bad_mask": 1, "wrong_entity": 1}}
    done = json.loads(_nest(home, "amend", NAME, "--from-review", "--json").stdout)
    assert done["revision"] == "r2"
    assert done["rows"] == ROWS - 7  # eight wrong rows, one of them corrected
    folder = home / "home" / "snapshots" / NAME
    manifest = read_manifest(folder)
    assert Counter(item.change for item in manifest.errata) == {"removed": 7, "answer": 1}
    card = (folder / "README.md").read_text()
    assert "6 of 149 rows drawn at random were wrong: 4.0 % (95 % interval 1.5 to 8.6 %)" in card
    assert "2 of 50 were wrong (looked at apart, in no estimate)" in card
    assert "good" in _nest(home, "verify", NAME).stderr
    # the new revision has a sample of its own, and nobody looked at that yet
    assert "nobody judged" in _nest(home, "amend", NAME, "--from-review", code=2).stderr


def test_another_reviewers_file_is_merged(home: Path, tmp_path: Path) -> None:
    own = home / "home" / "reviews" / NAME / "ada.jsonl"
    other = tmp_path / "from-bo.jsonl"
    other.write_text(own.read_text().replace('"reviewer":"ada"', '"reviewer":"bo"'))
    merged = _nest(home, "review", NAME, "--merge", str(other))
    assert "of bo" in merged.stderr
    told = json.loads(_nest(home, "review", NAME, "--summary", "--json").stdout)
    assert told["reviewers"] == ["ada", "bo"]
    assert told["agreement"] == {"pairs": 199, "equal": 1.0, "kappa": pytest.approx(1.0)}
    assert "0 new verdicts" in _nest(home, "review", NAME, "--merge", str(other)).stderr
    other.write_text("hello\n")
    assert "not a verdict" in _nest(home, "review", NAME, "--merge", str(other), code=2).stderr
