"""Every `nest` command of README and docs is executed on the finished sample week, or named with the test that does it.

Names that stand for the reader's own (W, ID, OWNER/NAME) are filled in; dates are those that the sample week has.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.forked import Forked
from support.hub import LoopbackHub
from support.week import WINDOW, Week, ready_database

from engine.core.masks import encode_png
from engine.snapshot.masks_in import read_mask
from engine.snapshot.verdicts import Verdict, append, file_of
from flows.sample.config import sample_overrides

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: Commands that need what is not here (a Hub, a browser, a server, another's week), by how they begin, with the test
#: that runs them and a word of it.
ELSEWHERE = {
    r"nest review (W|\d{6}_\d{6})( --port 8765)?$": ("review/test_page.py", '"review"'),
    r"nest review W --merge": ("review/test_page.py", "--merge"),
    r"nest novelty": ("test_quote_commands.py", '"novelty"'),
    r"nest push": ("test_publish_commands.py", '"push"'),
    r"nest release": ("test_release.py", '"release"'),
    r"nest unseal": ("test_sealed.py", '"unseal"'),
    r"nest receive": ("test_sealed.py", '"receive"'),
    r"nest replay": ("test_quote_commands.py", '"replay"'),
    r"nest compare": ("test_compare.py", '"compare"'),
    r"nest amend$": ("test_publish_commands.py", '"amend"'),
    r"nest takedown$": ("test_publish_commands.py", '"takedown"'),
    r"nest takedown .*(?<!--dry-run)$": ("test_publish_commands.py", '"takedown"'),
    r"nest score W --predictions FILE": ("test_quote_commands.py", "--predictions"),
    r"nest score OWNER": ("test_quote_commands.py", "--predictions"),
    r"nest verify$": ("test_publish_commands.py", '"verify"'),
    r"nest score$": ("test_commands.py", '"score"'),
    r"nest ops": ("test_server_rules.py", "install-automations"),
    r"nest backfill .*--deployment": ("test_server.py", "backfill_with_a_killed_worker"),
    r"nest .*--batch": ("test_batches.py", "--batch"),
    r"nest refresh( --limit 20| --dry-run)?$": ("test_restart.py", '"refresh"'),
    r"nest show ID --html": ("test_story.py", "--html"),
    r"nest show$": ("test_commands.py", '"show"'),
    r"nest cite$": ("test_quote_commands.py", '"cite"'),
}
#: What ends otherwise than with 0 here, and rightly so.
CODES = {"nest amend W --from-review": 2}  # nobody has judged a row of what the page before made of the snapshot


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


@pytest.fixture
def finished(tmp_path: Path) -> Iterator[tuple[Week, Forked]]:
    """One publisher's week, finished, and the way to run commands on it; the Hub they speak to is on loopback."""
    with Week(tmp_path / "week", writer="template", overrides={"score.segmenters": ["portable"]}) as week:
        sources = sample_overrides(week.publishers.port)["source"]
        week.write_config({**week.settings, "source": [row for row in sources if row["name"] == "herald"]})
        ready_database(week.home, tmp_path / "cache")
        with LoopbackHub() as hub, Forked(week.folder, {**week.env(), **hub.environ(tmp_path / "hf")}) as forked:
            ended = forked.nest("refresh", "--window", WINDOW)
            assert ended.code == 0, ended.stderr
            yield week, forked


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_documented_command_runs(finished: tuple[Week, Forked]) -> None:
    import pyarrow.parquet as pq

    week, forked = finished
    (data,) = (week.home / "snapshots" / f"NEST_{WINDOW}" / "data").glob("*.parquet")
    found = pq.read_table(data, columns=["id", "answer", "annotations"]).to_pylist()
    rows = [row for row in found if row["answer"] != "Grace Hopper"]  # which is no correction of the others
    other = read_mask(rows[1]["annotations"][0]["bytes"]).mask.copy()
    other[:1] ^= True  # the mask that is there already would be no correction
    (week.folder / "mask.png").write_bytes(encode_png(other))
    (pages,) = week.home.glob(f"windows/{WINDOW}/collect/*/part-00000.jsonl")
    url = json.loads(pages.read_text(encoding="utf-8").splitlines()[0])["url"]
    manifest = json.loads((data.parent.parent / "snapshot.json").read_text(encoding="utf-8"))
    said = Verdict(
        snapshot=manifest["name"],
        revision="r1",
        digest=manifest["digest"],
        rows=len(found),
        sample_id=rows[3]["id"],
        stratum="random",
        verdict="private_person",
        reviewer="ada",
    )
    append(file_of(week.home, manifest["name"], "ada"), said)
    names = {"W": WINDOW, "ID2": rows[2]["id"], "URL": url, "OWNER/NAME_scores": "news/scores"}
    ran, failed = [], []
    # what changes the snapshot comes last
    for command in sorted(commands(), key=lambda told: ("--recollect" in told, told.startswith("nest amend"))):
        if elsewhere(command) or command == "nest":
            continue
        words = shlex.split(command)[1:]
        names["ID"] = rows["W" in words]["id"]  # each page corrects a row of its own
        words = [names.get(word, word) for word in words]
        if words[0] == "backfill":
            words[words.index("--from") + 1], words[words.index("--to") + 1] = "2026-11-16", "2026-11-22"
        if words[0] == "init":
            words.append(f"fresh-{len(ran)}.toml")  # each is its reader's first
        if words[0] == "export":
            shutil.rmtree(week.folder / words[2], ignore_errors=True)
        ran.append(command)
        ended = forked.nest(*words)
        if ended.code != CODES.get(command, 0) or "Traceback" in ended.stderr:
            failed.append(f"{command}: exit {ended.code}: {ended.stderr[-300:]}")
    assert not failed, "\n".join(failed)
    assert len(ran) > 15


def test_what_is_run_elsewhere_is_named_there() -> None:
    """Every command that is not run here is in the words of the test that runs it, and no entry is for nothing."""
    used = {pattern for pattern in ELSEWHERE for command in commands() if re.match(pattern, command)}
    assert set(ELSEWHERE) - used == set()
    for name, word in ELSEWHERE.values():
        assert word in (Path(__file__).parent / name).read_text(encoding="utf-8"), f"{word} in {name}"
