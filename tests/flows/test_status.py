"""`nest status`: 24 lines of 80 characters, the right colours, quick on years of weeks, the same as page and JSON."""

import json
import os
import pty
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from support.weeks import NOW, SOURCES, label, simulate

from engine.core.config import load_config
from engine.snapshot.verdicts import Verdict, append, file_of
from flows.status.facts import open_takedowns
from flows.status.gather import Status, gather, plain
from flows.status.page import page
from flows.status.screen import HEIGHT, WIDTH, lines, render

ROOT = Path(__file__).resolve().parents[2]
CONFIG = (
    'home = "home"\n[llm]\nmodel = "m"\nmonthly_usd = 15.0\n[score]\nanchors = ["grounded-sam"]\n'
    "[credentials.expires]\nOPENAI_API_KEY = 2026-11-21\nHF_TOKEN = 2026-12-01\nBRAVE_API_KEY = 2027-06-01\n"
    + "".join(f'[[source]]\nname = "{name}"\nurl = "https://{name}.example/"\n' for name in SOURCES)
)


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty weeks; in the last one a source is dark, the yield has dropped, and a key has expired."""
    folder = tmp_path_factory.mktemp("years")
    simulate(folder / "home", dark="courier", drop=0.4)
    (folder / "nest.toml").write_text(CONFIG)
    return folder


def _gather(folder: Path) -> Status:
    return gather(load_config(folder / "nest.toml", environ={}), now=NOW)


def _nest(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {k: v for k, v in os.environ.items() if not k.startswith("NEST")} | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def _colours(status: Status) -> dict[str, set[str]]:
    """Colours by the first word of a line."""
    found: dict[str, set[str]] = {}
    for line in lines(status):
        found.setdefault(line[0].text.strip(), set()).update(part.colour for part in line[1:] if part.text.strip())
    return found


def _text(status: Status) -> str:
    return render(lines(status), colours=False)


def test_an_empty_home_fits_and_names_the_first_command(tmp_path: Path) -> None:
    done = _nest(tmp_path, "status")
    assert done.returncode == 0
    told = done.stdout.splitlines()
    assert len(told) == HEIGHT
    assert told[-1].split(None, 1) == ["next", "nest init"]
    assert list(tmp_path.iterdir()) == []


def test_years_of_weeks_fit_on_one_screen(years: Path) -> None:
    told = _text(_gather(years)).splitlines()
    assert len(told) == HEIGHT
    assert max(len(line) for line in told) <= WIDTH
    assert told[0].startswith(f"NEST  {label(0)}  16 November 2026 to 22 November 2026")
    assert "60 windows, 60 snapshots" in told[1]
    assert "\x1b" not in "".join(told)


def test_the_figures_are_right(years: Path) -> None:
    status = _gather(years)
    told = _text(status)
    rows = [w.rows for w in status.weeks]
    before = sorted(r for r in rows[-5:-1] if r is not None)
    assert status.usual["rows"] == (before[1] + before[2]) / 2
    assert rows[-1] is not None
    assert f"{100 * (rows[-1] / status.usual['rows'] - 1):+.0f} %" in told
    # three candidates in turn: 1, then overlaps 1 and 1/3, then 1, 1/3 and 0
    assert status.candidates is not None
    assert status.candidates.chance == pytest.approx((1 + 2 / 3 + 4 / 9) / 3, abs=0.01)
    assert "a random candidate with SAM would score gIoU 70." in told
    assert "33 % of" in told or "34 % of" in told
    assert "grounded-sam 45.0 (41.0 to 49.0)" in told
    assert "rose:grounded-sam 61.0 (57.0 to 65.0)" in told
    assert "4 failed, 0 missing of 1200 pairs, 3 of them grounded-sam" in told
    # half a dollar a day: today and the seven days before, and the days of November
    assert "$3.50 in 7 days" in told
    assert "$12.00 this month of $15.00" in told
    assert "1.50 h annotate" in told
    codes = re.search(r"^lost most (.*)$", told, re.MULTILINE)
    assert codes is not None
    assert len(re.findall(r"\d+ \w+", codes[1])) == 5
    top = [int(n) for n in re.findall(r"(\d+) [a-z]", codes[1])]
    assert top == sorted(top, reverse=True)


def test_the_colours_are_right(years: Path) -> None:
    colours = _colours(_gather(years))
    # fewer links for the dark source are no drop yet, 40 % of the usual rows are
    assert colours["change"] == {"green", "red"}
    assert {"green", "red"} <= colours["sources"]
    assert colours["keys"] == {"red", "amber", "green"}
    assert colours["review"] == {"amber"}
    assert colours["failed"] == {"amber"}
    assert colours["takedowns"] == {"green"}
    told = _text(_gather(years))
    assert "courier: " in told
    assert "OPENAI_API_KEY expired 3 d ago  HF_TOKEN 7 d  BRAVE_API_KEY 189 d" in told
    assert told.splitlines()[-1].split(None, 1)[1] == "nest doctor"


def test_an_ordinary_week_is_green(tmp_path: Path) -> None:
    simulate(tmp_path / "home", weeks=8)
    (tmp_path / "nest.toml").write_text(CONFIG.replace("2026-11-21", "2027-11-21"))
    status = _gather(tmp_path)
    colours = _colours(status)
    assert colours["change"] == {"green"}
    assert colours["sources"] == {"green"}
    assert status.next == f"nest review {label(0)}"


def _cpu_s(code: str, folder: Path) -> float:
    """Least processor seconds of three runs of a program: less than the clock says on a busy machine."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("NEST")} | {"PYTHONPATH": str(ROOT)}
    used = []
    for _ in range(3):
        before = os.times()
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        after = os.times()
        assert done.returncode == 0, done.stderr
        used.append(after.children_user - before.children_user + after.children_system - before.children_system)
    return min(used)


HEAVY = (
    *("numpy", "pyarrow", "prefect", "torch", "datasets", "huggingface_hub", "httpx", "PIL", "openai", "lxml"),
    # what is light elsewhere and no part of a screen: together a third of its time
    *("asyncio", "engine.core.schema", "engine.core.store", "engine.news.harvest", "flows.run"),
)


def test_under_a_second_and_without_heavy_imports(years: Path) -> None:
    status = _cpu_s(
        "import sys\nfrom flows.cli import _run\nassert _run(['status']) == 0\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\nassert not loaded, loaded\n",
        years,
    )
    assert status < 1.0


def _opened(folder: Path) -> list[str]:
    """The files under a home that the screen opens, each as often as it does."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom flows.cli import _run\nopened = []\n"
        "def heard(event, args):\n    if event == 'open': opened.append(str(args[0]))\n"
        "sys.addaudithook(heard)\nassert _run(['status']) == 0\n"
        "home = str(Path('home').resolve())\nprint(*[path for path in opened if path.startswith(home)], sep='\\n')\n"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith("NEST")} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.startswith("/")]


def test_an_earlier_week_costs_the_screen_one_small_file(years: Path, tmp_path: Path) -> None:
    simulate(tmp_path / "home", weeks=20, dark="courier", drop=0.4)
    (tmp_path / "nest.toml").write_text(CONFIG)
    few, many = _opened(tmp_path), _opened(years)
    assert len(many) - len(few) == 60 - 20
    assert sum(path.endswith("snapshot.json") for path in many) == 60
    # beyond them: the latest windows' links and the latest one's masks, scores, ledger and hours, whatever came before
    assert len(few) - 20 < 30


def test_a_terminal_gets_colours_a_pipe_and_no_color_do_not(years: Path) -> None:
    def shown(**extra: str) -> bytes:
        leader, follower = pty.openpty()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **extra}
        env.pop("NO_COLOR", None)
        env.update(extra)
        with subprocess.Popen(
            [sys.executable, "-m", "flows.cli", "status"], cwd=years, env=env, stdout=follower
        ) as run:
            os.close(follower)
            found = b""
            while True:
                try:
                    piece = os.read(leader, 4096)
                except OSError:  # Linux says so when the other side has closed
                    break
                if not piece:
                    break
                found += piece
            run.wait(timeout=30)
        os.close(leader)
        return found

    coloured = shown()
    assert b"\x1b[31m" in coloured
    assert coloured.count(b"\r\n") == HEIGHT
    assert b"\x1b" not in shown(NO_COLOR="1")
    assert b"\x1b" not in shown(TERM="dumb")
    assert "\x1b" not in _nest(years, "status").stdout


def test_json_and_page_tell_the_same(years: Path, tmp_path: Path) -> None:
    told = json.loads(_nest(years, "status", "--json").stdout)
    assert told["window"] == label(0)
    assert len(told["windows"]) == 60
    assert {"name": "courier", "state": "red"}.items() <= told["sources"][1].items()
    assert told["hub"]["equal"] is None
    out = tmp_path / "status.html"
    assert _nest(years, "status", "--html", str(out)).returncode == 0
    text = out.read_text()
    assert text.count("<tr><th>") == 61  # and the head
    assert '<span class="red">' in text
    assert "<script" not in text
    status = _gather(years)
    assert page(status) == page(status)
    assert plain(status)["next"] == "nest doctor"


def test_names_from_outside_are_not_markup_and_do_not_speak_to_the_terminal(tmp_path: Path) -> None:
    simulate(tmp_path / "home", weeks=2)
    path = tmp_path / "home" / "reports" / f"NEST_{label(0)}" / "s1" / "report.json"
    path.write_text(path.read_text().replace('"lisa"', '"<b>\\u001b[31m"'))
    (tmp_path / "nest.toml").write_text(CONFIG.replace('"grounded-sam"', '"<b>\\u001b[31m"'))
    status = _gather(tmp_path)
    assert "\x1b" not in _text(status)
    assert "<b>" not in page(status)


def test_a_review_and_a_takedown_show(tmp_path: Path) -> None:
    simulate(tmp_path / "home", weeks=3)
    (tmp_path / "nest.toml").write_text(CONFIG.replace("2026-11-21", "2027-11-21"))
    name = f"NEST_{label(0)}"
    base = Verdict(
        snapshot=name,
        revision="r1",
        digest="d",
        rows=400,
        sample_id="",
        stratum="random",
        verdict="right",
        reviewer="ada",
    )
    for number in range(150):
        said = {"sample_id": str(number), "verdict": "bad_mask" if number < 2 else "right"}
        append(file_of(tmp_path / "home", name, "ada"), base.model_copy(update=said))
    status = _gather(tmp_path)
    assert "2 of 150 wrong: 1.3 % (0.2 to 4.7)" in _text(status)
    assert _colours(status)["review"] == {"green", "dim"}
    assert status.next == f"nest amend {label(0)} --from-review"
    receipts = tmp_path / "home" / "receipts"
    receipts.mkdir()
    at = NOW - timedelta(days=4, hours=1)
    open_one = {"at": at.isoformat(), "failures": ["the Hub was left alone"], "repositories": {"o/n": "x"}}
    (receipts / "takedown-1.json").write_text(json.dumps(open_one))
    assert "1 open, the oldest for 4 days" in _text(_gather(tmp_path))
    assert _colours(_gather(tmp_path))["takedowns"] == {"red"}
    done = {"at": NOW.isoformat(), "failures": [], "repositories": {"o/n": "x"}}
    (receipts / "takedown-2.json").write_text(json.dumps(done))
    assert open_takedowns(tmp_path / "home", now=NOW) == []


def test_damaged_files_do_not_stop_the_screen(tmp_path: Path) -> None:
    simulate(tmp_path / "home", weeks=3)
    (tmp_path / "nest.toml").write_text(CONFIG)
    home = tmp_path / "home"
    (home / "snapshots" / f"NEST_{label(1)}" / "snapshot.json").write_text("{")
    (home / "reports" / f"NEST_{label(0)}" / "s1" / "report.json").write_text("[]")
    (home / "ledger" / "2026-11.jsonl").write_text('{"at": "x"}\n{"at": 3, "usd"\n[]\n')
    (home / "reviews" / f"NEST_{label(0)}").mkdir(parents=True)
    (home / "reviews" / f"NEST_{label(0)}" / "bo.jsonl").write_text("hello\n")
    status = _gather(tmp_path)
    assert len(_text(status).splitlines()) == HEIGHT
    assert any("bo.jsonl" in problem for problem in status.problems)
