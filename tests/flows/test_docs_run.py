"""Every `nest` command of README and docs is executed on the finished sample week, or named with the test that does it.

Names that stand for the reader's own (W, ID, OWNER/NAME) are filled in; dates are those that the sample week has.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.week import WINDOW, Week, ready_database

from engine.core.masks import encode_png
from engine.snapshot.masks_in import read_mask

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: Commands that need what is not here (a Hub, a browser, a server, another's week), by how they begin, with the test
#: that runs them and a word of it.
ELSEWHERE = {
    r"nest review (W|\d{6}_\d{6})( --port 8765)?$": ("tests/flows/review/test_page.py", '"review"'),
    r"nest review W --merge": ("tests/flows/review/test_page.py", "--merge"),
    r"nest novelty": ("tests/flows", '"novelty"'),
    r"nest push": ("tests/flows", '"push"'),
    r"nest release": ("tests/flows", "release"),
    r"nest unseal": ("tests/flows", "unseal"),
    r"nest receive": ("tests/flows", "receive"),
    r"nest replay$": ("tests/inference", "replay"),
    r"nest compare": ("tests/flows", "compare"),
    r"nest amend$": ("tests/flows/test_commands.py", '"amend"'),
    r"nest takedown$": ("tests/flows/test_commands.py", '"takedown"'),
    r"nest takedown .*(?<!--dry-run)$": ("tests/flows/test_commands.py", '"takedown"'),
    r"nest score W --predictions FILE": ("tests/flows/test_commands.py", "--predictions"),
    r"nest score OWNER": ("tests/flows/test_commands.py", "--predictions"),
    r"nest verify$": ("tests/flows/test_commands.py", '"verify"'),
    r"nest score$": ("tests/flows/test_commands.py", '"score"'),
    r"nest ops": ("tests/flows/test_server_rules.py", "install-automations"),
    r"nest backfill .*--deployment": ("tests/flows/test_server.py", "--deployment"),
    r"nest .*--batch": ("tests/flows/test_batches.py", "--batch"),
    r"nest refresh( --limit 20| --dry-run)?$": ("tests/flows/test_restart.py", '"refresh"'),
    r"nest show ID --html": ("tests/flows", "--html"),
    r"nest .*\.\.\.": ("tests/flows", "nest"),
}
#: What ends otherwise than with 0 here, and rightly so.
CODES = {
    "nest amend W --from-review": (0, 2, 4),
    # the page before made the same correction
    'nest amend W ID --answer "Grace Hopper" --because "the caption names her"': (0, 2),
    'nest amend W ID --answer "Grace Hopper" --because "the caption names her" --dry-run': (0, 2),
    "nest doctor": (0, 2),
    "nest init": (0, 4),
    "nest sources check": (0, 1),
}


def commands() -> list[str]:
    """The commands of all pages in their order, each once."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:bash|cron)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in block.splitlines():
                if match := re.search(r"(?:^|&& |/)(nest [^#&|]*)", line.strip()):
                    found[match[1].strip()] = None
        for told in re.findall(r"`(nest [a-z][^`]*)`", text):
            found[" ".join(told.split())] = None
    return list(found)


def elsewhere(command: str) -> tuple[str, str] | None:
    return next((where for pattern, where in ELSEWHERE.items() if re.match(pattern, command)), None)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Week]:
    folder = tmp_path_factory.mktemp("docs")
    with Week(folder, writer="template", overrides={"score.segmenters": ["portable"]}) as week:
        ready_database(week.home, folder / "cache")
        week.nest("refresh", "--window", WINDOW)
        yield week


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.skipif(not os.environ.get("NEST_CHAOS"), reason="nine minutes: part of make chaos")
@pytest.mark.timeout(2400)
def test_every_documented_command_runs(finished: Week) -> None:
    import pyarrow.parquet as pq

    (data,) = (finished.home / "snapshots" / f"NEST_{WINDOW}" / "data").glob("*.parquet")
    rows = pq.read_table(data, columns=["id", "annotations"]).to_pylist()
    other = read_mask(rows[0]["annotations"][0]["bytes"]).mask.copy()
    other[:1] ^= True  # the mask that is there already would be no correction
    (finished.folder / "mask.png").write_bytes(encode_png(other))
    (pages,) = finished.home.glob(f"windows/{WINDOW}/collect/*/part-00000.jsonl")
    url = json.loads(pages.read_text(encoding="utf-8").splitlines()[0])["url"]
    names = {"W": WINDOW, "ID": rows[0]["id"], "ID2": rows[1]["id"], "URL": url}
    ran, failed = [], []
    # what changes the snapshot comes last
    for command in sorted(commands(), key=lambda told: ("--recollect" in told, told.startswith("nest amend"))):
        if elsewhere(command) or command == "nest":
            continue
        words = [names.get(word, word) for word in shlex.split(command)[1:]]
        if words[0] == "backfill":
            words[words.index("--from") + 1], words[words.index("--to") + 1] = "2026-11-16", "2026-11-22"
        if words[0] == "init":
            (finished.folder / "fresh").mkdir(exist_ok=True)
            words.append("fresh/nest.toml")
        if words[0] == "export":
            shutil.rmtree(finished.folder / words[2], ignore_errors=True)
        ran.append(command)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "flows.cli", *words],
                cwd=finished.folder,
                env=finished.env(),
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        except subprocess.TimeoutExpired:
            failed.append(f"{command}: did not end")
            continue
        if done.returncode not in CODES.get(command, (0,)) or "Traceback" in done.stderr:
            failed.append(f"{command}: exit {done.returncode}: {done.stderr[-300:]}")
    assert not failed, "\n".join(failed)
    assert len(ran) > 15


@pytest.mark.parametrize("command", [c for c in commands() if elsewhere(c)])
def test_what_is_run_elsewhere_is_named_there(command: str) -> None:
    where, word = elsewhere(command) or ("", "")
    place = ROOT / where
    files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    own = Path(__file__)
    assert any(word in path.read_text(encoding="utf-8") for path in files if path != own), f"{word} in {where}"
