"""The pages for Monday's questions: their commands are run, one after the other, on a small finished week."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.hub import LoopbackHub
from support.snapshots import NAMES, records, snapshot

from engine.core.schema import Code, Link, Rejected, Stage
from engine.core.store import BlobStore, StageDir
from engine.snapshot.manifest import read_manifest
from engine.snapshot.revise import read_rows
from engine.snapshot.verdicts import Verdict, append, file_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "monday").glob("*.md"))
WINDOW, NAME = "261123_261129", "NEST_261123_261129"
#: Commands that need publishers, a model, a card or a browser: they have tests of their own.
ELSEWHERE = ("nest refresh", "nest compare", "nest doctor", "nest review W", "nest status --window W", "cp ")
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _lines(page: Path) -> list[str]:
    found = [line for block in BLOCK.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    return [re.sub(r"\s+#.*$", "", line) for line in found if line.strip()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week with stages, a snapshot, a score and a review."""
    folder = tmp_path_factory.mktemp("monday")
    home = folder / "home"
    articles, questions, annotations = records(8, BlobStore(home / "blobs"))
    window = home / "windows" / WINDOW
    links = [Link(url=a.canonical_url, source="herald", source_type="feed") for a in articles]
    lost = Rejected(item="https://x.example/a", stage=Stage.COLLECT, code=Code.PAYWALL, detail="a wall")
    StageDir(window / "collect" / "c1" / "found").commit(links, [], stage="find", found=8)
    StageDir(window / "collect" / "c1").commit(articles, [lost], stage="collect", found=9)
    StageDir(window / "ask" / "a1").commit(questions, [], stage="ask", found=8)
    StageDir(window / "annotate" / "m1").commit(annotations, [], stage="annotate", found=8)
    place = home / "snapshots" / NAME
    manifest = snapshot(place, 8)
    shutil.rmtree(home / "snapshots" / "blobs")
    (folder / "nest.toml").write_text(
        'home = "home"\n[snapshot]\ncontact = "removal@nest.example"\n[hub]\nrepo = "news/{name}"\n'
        '[score]\nsegmenters = ["portable"]\n'
    )
    for number, row in enumerate(read_rows(place)):
        said = Verdict(
            snapshot=NAME,
            revision="r1",
            digest=manifest.digest,
            rows=8,
            sample_id=row.id,
            stratum="random",
            verdict="bad_mask" if number == 7 else "right",
            reviewer="ada",
        )
        append(file_of(home, NAME, "ada"), said)
    done = _run(folder, ["nest", "score", WINDOW], {})
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


def _run(folder: Path, words: list[str], extra: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "HF_", "OPENAI"))}
    env |= {"PYTHONPATH": str(ROOT), **extra}
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *words[1:]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def test_there_is_a_page_for_every_question() -> None:
    assert [page.stem for page in PAGES] == [
        "bad-row",
        "correction",
        "dark-source",
        "dead-gpu",
        "expired-key",
        "legal-mail",
        "quote-a-result",
        "retired-model",
        "thin-week",
    ]
    for page in PAGES:
        assert len(page.read_text(encoding="utf-8").splitlines()) <= 40, page
        assert _lines(page), page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(page: Path, finished: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / "week"
    shutil.copytree(finished, folder)
    place = folder / "home" / "snapshots" / NAME
    rows = list(read_rows(place))
    taken = {"W": WINDOW, "ID": rows[0].id, "ID2": rows[1].id, "URL": str(rows[0].provenance["canonical_url"])}
    # the review's verdicts are of r1: what comes after another correction asks for a review of its own
    reviewed = [line for line in _lines(page) if "--from-review" in line]
    others = [line for line in _lines(page) if line not in reviewed]
    ran = 0
    for line in [*reviewed, *others]:
        if line.startswith(ELSEWHERE) and "--summary" not in line:
            continue
        words = [taken.get(word, word) for word in shlex.split(line.replace("Eileen Collins", NAMES[3]))]
        done = _run(folder, words, hub.environ(tmp_path / "hf"))
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran or page.stem in ("dead-gpu", "expired-key", "retired-model")
    if page.stem == "correction":
        assert read_manifest(place).revision == "r4"
        assert read_manifest(place).rows == 6
        assert set(hub.repo(f"news/{NAME}").tags) == {"r4"}
