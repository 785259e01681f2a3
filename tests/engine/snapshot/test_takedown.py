"""After a takedown nothing here and nothing the Hub serves holds the picture's bytes, its address or the name."""

from __future__ import annotations

import base64
import copy
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support import snapshots
from support.hub import LoopbackHub
from support.hub_repos import Repo

from engine.core.errors import BusyError, ConfigError, TransientError
from engine.core.schema import Article, ImageRef, Prediction, Rejected, Sample
from engine.core.store import Home
from engine.core.windows import parse_window
from engine.snapshot.amend import Change, amend
from engine.snapshot.build import build
from engine.snapshot.hub import push
from engine.snapshot.manifest import read_manifest
from engine.snapshot.needles import Needles
from engine.snapshot.optout import read_optout
from engine.snapshot.revise import put_in_place, read_rows
from engine.snapshot.samples import join
from engine.snapshot.takedown import Wish, takedown
from engine.snapshot.verify import verify

EARLIER = parse_window("2026-W47")
NAME = "Tomás Okafor"
AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


@dataclass
class Place:
    """A home with two windows, of which one picture is in both, and everything that a run leaves behind."""

    home: Path
    image: ImageRef
    article: Article
    jpeg: bytes

    @property
    def later(self) -> Path:
        return self.home / "snapshots" / snapshots.WINDOW.name

    @property
    def earlier(self) -> Path:
        return self.home / "snapshots" / EARLIER.name


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    home = Home(tmp_path_factory.mktemp("template") / "home")
    blobs = home.blobs
    articles, questions, annotations = snapshots.records(6, blobs)
    target = next(n for n, question in enumerate(questions) if question.answer == NAME)
    image = articles[target].images[0]
    # the same photo once more, a week earlier, from another address and as other bytes
    other_articles, other_questions, other_annotations = snapshots.records(3, blobs, seed=100)
    again = blobs.put(blobs.get(image.sha256) + b"\0", "jpg")
    twin = image.model_copy(update={"sha256": again, "url": "https://elsewhere.example/copy.jpg"})
    other_articles[0] = other_articles[0].model_copy(update={"images": (twin,)})
    other_questions[0] = other_questions[0].model_copy(update={"images": (again,), "answer": "Nobody Known"})
    masks = other_annotations[0].images[0].model_copy(update={"image": again})
    other_annotations[0] = other_annotations[0].model_copy(update={"images": (masks,)})
    weeks = (
        (snapshots.WINDOW, articles, questions, annotations),
        (EARLIER, other_articles, other_questions, other_annotations),
    )
    for window, found, asked, drawn in weeks:
        stages = (("collect", found), ("ask", asked), ("annotate", drawn))
        for stage, items in stages:
            lost = [Rejected(item=image.url, stage="collect", code="image_too_small", detail=f"of {NAME}")]
            home.stage(window, stage, "k1").commit(items, lost, stage=stage, found=9)
        home.stage(window, "collect", "k1").commit_shard(0, found, [])
        folder = home.snapshot(window.name)
        folder.mkdir(parents=True)
        build(
            folder,
            [item for item in join(found, asked, drawn) if isinstance(item, Sample)],
            window=window,
            config=snapshots.CONFIG,
            hub_repo="news/{name}",
            blobs=blobs,
            key="k",
        )
    _leave_traces(home, image, articles[target])
    return Place(home.root, image, articles[target], blobs.get(image.sha256))


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Place:
    """A copy of the home for one test."""
    shutil.copytree(template.home, tmp_path / "home")
    return replace(template, home=tmp_path / "home")


@pytest.fixture(scope="module")
def published(template: Place, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Repo]]:
    """The home and the Hub's repositories after both snapshots were pushed, the later one in two revisions."""
    home = tmp_path_factory.mktemp("published") / "home"
    shutil.copytree(template.home, home)
    with LoopbackHub() as hub:
        publish(hub, replace(template, home=home))
        return home, hub.repos


@pytest.fixture
def there(
    published: tuple[Path, dict[str, Repo]], hub: LoopbackHub, template: Place, tmp_path: Path
) -> tuple[Place, dict[str, Any]]:
    """A copy of what was published, on the test's own Hub, and how to reach it."""
    home, repos = published
    shutil.copytree(home, tmp_path / "home")
    hub.repos = copy.deepcopy(repos)
    return replace(template, home=tmp_path / "home"), {"token": hub.token, "endpoint": hub.endpoint}


def _leave_traces(home: Home, image: ImageRef, article: Article) -> None:
    jpeg = home.blobs.get(image.sha256)
    head = json.dumps({"url": image.url, "kind": "image"})
    files = {
        "cache/http/aa/1.http": head.encode() + b"\n" + jpeg,
        "cache/http/aa/2.http": b'{"url":"https://x.example"}\n<p>Tom&aacute;s  Okafor spoke</p>',
        "cache/http/aa/3.http": b'{"url":"https://x.example"}\n' + "<p>Tomás Okafor</p>".encode("cp1252"),
        "cache/http/aa/keep.http": b'{"url":"https://y.example"}\n<p>Tomas Okaforov and others</p>',
        "cache/llm/aa/1.json": json.dumps({"reply": {"text": f"the answer is {NAME.upper()}"}}).encode("ascii"),
        "cache/llm/aa/keep.json": b'{"reply": {"text": "somebody"}}',
        "harvest/herald/2026-48.jsonl": f'{{"url":"{article.url}","title":"{NAME}"}}\n{{"url":"https://z"}}\n'.encode(),
        "predictions/x/run.json": json.dumps({"note": NAME}).encode(),
        "reports/NEST_261123_261129/k/report.html": b"<img src='data:image/jpeg;base64,"
        + base64.b64encode(jpeg)
        + b"'>",
        "windows/261123_261129/ask/k1/run.json": json.dumps({"last": image.url.replace("/", "\\/")}).encode(),
    }
    for name, data in files.items():
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    rows = [row.id for row in read_rows(home.snapshot(snapshots.WINDOW.name))]
    items = [Prediction(sample_id=name, segmenter="s", masks=(None,)) for name in rows]
    home.predictions(snapshots.WINDOW.name, "s", "k").commit(items, [], stage="predict", found=len(items))


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as found:
        yield found


def everything(folder: Path) -> Iterator[tuple[str, bytes]]:
    """All bytes under a folder; the columns of Parquet files are unpacked, since they are compressed."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield str(path), path.read_bytes()
        if path.suffix == ".parquet":
            yield from unpacked(str(path), path.read_bytes())


def unpacked(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    for row in pq.read_table(io.BytesIO(data)).to_pylist():
        yield name, json.dumps(row, ensure_ascii=False, default=lambda value: "").encode()
        for item in [*(row.get("images") or ()), *(row.get("annotations") or ())]:
            yield name, item["bytes"]


def served(hub: LoopbackHub) -> Iterator[tuple[str, bytes]]:
    for repo in hub.repos.values():
        for name, data in repo.served().items():
            yield name, data
            if data[:4] == b"PAR1":
                yield from unpacked(name, data)


def grep(found: Iterator[tuple[str, bytes]], *needles: bytes) -> list[str]:
    return [name for name, data in found if any(needle.lower() in data.lower() for needle in needles)]


def traces(place: Place) -> list[bytes]:
    """The picture's bytes (also in base64), its addresses, and the name as files write it."""
    return [
        # from the pixels: the tables at the beginning are the same in all pictures
        place.jpeg[-220:-20],
        base64.b64encode(place.jpeg)[-240:-40],
        place.image.url.removeprefix("https://").encode(),
        b"elsewhere.example/copy.jpg",
    ]


def names() -> list[bytes]:
    return [NAME.encode(), NAME.encode("cp1252"), b"Tom\\u00e1s Okafor", b"Tom&aacute;s  Okafor", b"TOM\\u00c1S OKAFOR"]


def publish(hub: LoopbackHub, place: Place) -> dict[str, object]:
    """Both snapshots on the Hub, the later one in two revisions."""
    to = {"repo": "news/{name}", "token": hub.token, "endpoint": hub.endpoint}
    push(place.earlier, **to)
    push(place.later, **to)
    other = next(row.id for row in read_rows(place.later) if row.default["answer"] != NAME)
    new = place.home / "snapshots" / "new"
    amend(place.later, new, changes=[Change(other, "a better name", answer="Ada Byron")])
    put_in_place(new, place.later)
    push(place.later, **to)
    return {"token": hub.token, "endpoint": hub.endpoint}


@pytest.mark.slow
@pytest.mark.parametrize("by", ["entity", "image"])
def test_nothing_is_left_here_or_on_the_hub(hub: LoopbackHub, there: tuple[Place, dict[str, Any]], by: str) -> None:
    place, to = there
    row = next(row for row in read_rows(place.later) if row.default["answer"] == NAME)
    wish = {
        "entity": Wish(entities=(NAME,)),
        "image": Wish(images=(row.provenance["image_published_sha256"][0],)),
    }[by]
    looked_for = traces(place) + (names() if by == "entity" else [])
    assert grep(everything(place.home), *looked_for)
    assert grep(served(hub), *looked_for)
    receipt = takedown(place.home, wish, now=AT, **to)
    assert receipt.complete, receipt.failures
    assert grep(everything(place.home), *looked_for) == []
    assert grep(served(hub), *looked_for) == []
    # the row's id stands as a tombstone, and both weeks lost their copy of the picture
    assert row.id in read_manifest(place.later).tombstones
    assert set(receipt.rows) == {EARLIER.name, snapshots.WINDOW.name, f".superseded/{snapshots.WINDOW.name}.r1"}
    assert receipt.files["blobs"] >= 2
    for folder in (place.earlier, place.later):
        assert verify(folder) == []
        repo = hub.repo(f"news/{folder.name}")
        assert len(list(repo.history("main"))) == 1
        assert set(repo.tags.values()) == {repo.branches["main"]}
        files = {name: data for name, data in hub.files(repo.name).items() if name != ".gitattributes"}
        assert files == {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
    assert set(hub.repo(f"news/{snapshots.WINDOW.name}").tags) == {"r1", "r2"}
    # what had nothing to do with it is still there
    assert (place.home / "cache/http/aa/keep.http").exists()
    assert (place.home / "cache/llm/aa/keep.json").exists()
    assert read_manifest(place.later).rows == 6 - len(receipt.rows[snapshots.WINDOW.name])
    if by == "entity":
        # a second time there is nothing to find
        before = dict(everything(place.home / "snapshots"))
        again = takedown(place.home, wish, **to)
        assert again.complete
        assert again.rows == {}
        assert set(again.repositories.values()) == {"nothing of it there"}
        assert dict(everything(place.home / "snapshots")) == before


@pytest.mark.parametrize("by", ["id", "url"])
def test_nothing_is_left_here(place: Place, by: str) -> None:
    row = next(row for row in read_rows(place.later) if row.default["answer"] == NAME)
    wish = Wish(ids=(row.id,)) if by == "id" else Wish(urls=(place.image.url,))
    assert grep(everything(place.home), *traces(place))
    takedown(place.home, wish, on_hub=False)
    assert grep(everything(place.home), *traces(place)) == []
    assert read_manifest(place.later).rows == read_manifest(place.earlier).rows + 3 == 5


def test_stages_keep_their_keys_and_their_files_are_known(place: Place) -> None:
    home = Home(place.home)
    stage = home.stage(snapshots.WINDOW, "collect", "k1")
    before = stage.digests()
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    assert stage.digests() == before
    told = stage.manifest()
    assert "part-00000.jsonl" in told["purged"]
    assert all(NAME not in article.text for article in stage.read(Article))
    predictions = home.predictions(snapshots.WINDOW.name, "s", "k").read(Prediction)
    kept = {row.id for row in read_rows(place.later)}
    assert {item.sample_id for item in predictions} == kept


def test_later_builds_consult_the_list(place: Place, tmp_path: Path) -> None:
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    blobs = Home(tmp_path / "new").blobs
    found = join(*snapshots.records(6, blobs), opt_out=read_optout(place.home))
    lost = [item for item in found if isinstance(item, Rejected)]
    assert lost
    assert {item.code.value for item in lost} <= {"taken_down", "opted_out"}
    assert all(item.question.answer != NAME for item in found if isinstance(item, Sample))
    assert not any(NAME in item.line() for item in lost)


def test_the_receipt_and_the_list_spread_nothing(place: Place) -> None:
    receipt = takedown(place.home, Wish(entities=(NAME,)), on_hub=False, now=AT)
    written = (place.home / receipt.path).read_text(encoding="utf-8")
    listed = (place.home / "optout.jsonl").read_text(encoding="utf-8")
    for text in (written, listed):
        assert not Needles(names=frozenset({NAME})).in_text(text)
        assert place.image.url not in text
    assert json.loads(written)["at"] == "2026-12-01T12:00:00Z"
    assert not receipt.complete
    assert all("left alone" in failure for failure in receipt.failures)


def test_dry_run_changes_nothing(hub: LoopbackHub, there: tuple[Place, dict[str, Any]]) -> None:
    place, to = there
    before = dict(everything(place.home))
    commits = {name: dict(repo.branches) for name, repo in hub.repos.items()}
    receipt = takedown(place.home, Wish(entities=(NAME,)), dry_run=True, **to)
    assert receipt.rows
    assert receipt.files
    assert dict(everything(place.home)) == before
    assert {name: dict(repo.branches) for name, repo in hub.repos.items()} == commits


def test_a_hub_that_fails_leaves_everything_here_to_try_again(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    wish = Wish(entities=(NAME,))
    hub.fail("squash", times=9, status=503)
    with pytest.raises(TransientError):
        takedown(place.home, wish, sleep=lambda seconds: None, **to)
    assert grep(everything(place.home / "snapshots"), NAME.encode())
    hub._faults.clear()
    assert takedown(place.home, wish, **to).complete
    assert grep(served(hub), *traces(place), *names()) == []


def everywhere_gone(place: Place, hub: LoopbackHub) -> None:
    """Nothing of it is left, and what is left is whole under its old name with its tags."""
    assert grep(everything(place.home), *traces(place), *names()) == []
    assert grep(served(hub), *traces(place), *names()) == []
    assert set(hub.repos) == {f"news/{place.earlier.name}", f"news/{place.later.name}"}
    for folder in (place.earlier, place.later):
        repo = hub.repo(f"news/{folder.name}")
        assert set(repo.tags.values()) == {repo.branches["main"]}
        assert hub.files(repo.name)["snapshot.json"] == (folder / "snapshot.json").read_bytes()
    assert set(hub.repo(f"news/{place.later.name}").tags) == {"r1", "r2"}


def test_where_squashing_is_refused_the_repository_is_built_anew(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    hub.repo(f"news/{place.later.name}").private = True
    hub.fail("squash", times=2, status=403, message="Forbidden")
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert receipt.complete, receipt.failures
    assert all("built anew" in told for told in receipt.repositories.values())
    everywhere_gone(place, hub)
    assert hub.repo(f"news/{place.later.name}").private
    assert not hub.repo(f"news/{place.earlier.name}").private


def test_pull_requests_that_keep_old_revisions_go_with_the_repository(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]]
) -> None:
    place, to = there
    repo = hub.repo(f"news/{place.later.name}")
    repo.pulls["1"] = repo.branches["main"]
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert receipt.complete, receipt.failures
    everywhere_gone(place, hub)


@pytest.mark.slow
@pytest.mark.parametrize(("at", "after"), [("tag", False), ("delete", True), ("move", False)])
def test_an_interrupted_rebuilding_is_taken_up(
    hub: LoopbackHub, there: tuple[Place, dict[str, Any]], at: str, after: bool
) -> None:
    place, to = there
    wish = Wish(entities=(NAME,))
    hub.fail("squash", times=9, status=403, message="Forbidden")
    # as often as it is tried, so that the run gives up here, unless the lost answer is noticed
    hub.fail(at, times=5, status=503, after=after)
    try:
        takedown(place.home, wish, sleep=lambda seconds: None, **to)
    except TransientError:
        served_now = {name for name, repo in hub.repos.items() if "snapshot.json" in repo.resolve("main").tree}
        assert any(name.startswith(f"news/{place.later.name}") for name in served_now)
    hub._faults.clear()
    hub.fail("squash", times=9, status=403, message="Forbidden")
    assert takedown(place.home, wish, sleep=lambda seconds: None, **to).complete
    everywhere_gone(place, hub)


def test_nobody_writes_meanwhile(place: Place) -> None:
    stage = Home(place.home).stage(snapshots.WINDOW, "collect", "k1")
    before = dict(everything(place.home / "snapshots"))
    with stage.lock(), pytest.raises(BusyError, match="is being written by"):
        takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    code = "import sys; from pathlib import Path; from engine.core.store import register_writer\n"
    code += "register_writer(Path(sys.argv[1])); print('writing', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(place.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        with pytest.raises(BusyError, match="another process"):
            takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
        writer.communicate()
    assert dict(everything(place.home / "snapshots")) == before
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    stage.check()


def test_pilots_and_mixtures_lose_their_galleries_too(place: Place) -> None:
    pilot = place.home / "snapshots" / f"{place.later.name}.pilot9"
    shutil.copytree(place.later, pilot)
    row = next(row.id for row in read_rows(place.later) if row.default["answer"] == NAME)
    other = next(row.id for row in read_rows(place.later) if row.default["answer"] != NAME)
    home, told = Home(place.home), {}
    for name, identity in (("NEST_", f"0-NEST/{row}"), (f"{pilot.name}", row), ("other", other)):
        report = place.home / "reports" / name / "k"
        report.mkdir(parents=True)
        (report / "report.json").write_text(json.dumps({"samples": [{"id": identity}]}))
        (report / "report.html").write_text("small pictures")
        items = [Prediction(sample_id=one, segmenter="s", masks=(None,)) for one in (identity, "0-NEST/else")]
        told[name] = home.predictions(name, "s", "k")
        told[name].commit(items, [], stage="predict", found=2)
    takedown(place.home, Wish(ids=(row,)), on_hub=False)
    assert not any((place.home / "reports" / name / "k").exists() for name in ("NEST_", pilot.name))
    assert (place.home / "reports" / "other" / "k" / "report.html").exists()
    assert {name: len(found.read(Prediction)) for name, found in told.items()} == {
        "NEST_": 1,
        pilot.name: 1,
        "other": 2,
    }


def test_a_shard_that_lost_lines_is_still_a_finished_shard(place: Place) -> None:
    stage = Home(place.home).stage(snapshots.WINDOW, "collect", "k1")
    size = (stage.shard(0) / "part-00000.jsonl").stat().st_size
    takedown(place.home, Wish(entities=(NAME,)), on_hub=False)
    assert (stage.shard(0) / "part-00000.jsonl").stat().st_size < size
    assert stage.shard_done(0)


def test_what_a_hub_does_not_allow_is_said(hub: LoopbackHub, there: tuple[Place, dict[str, Any]]) -> None:
    place, to = there
    hub.fail("lfs-delete", times=9, status=403, message="Forbidden")
    receipt = takedown(place.home, Wish(entities=(NAME,)), sleep=lambda seconds: None, **to)
    assert not receipt.complete
    assert any("large files" in failure for failure in receipt.failures)
    assert grep(everything(place.home), *traces(place)) == []


def test_a_domain_goes_with_its_pages_and_pictures(place: Place) -> None:
    takedown(place.home, Wish(domains=("elsewhere.example",)), on_hub=False)
    assert grep(everything(place.home), b"elsewhere.example") == []
    assert read_manifest(place.earlier).rows == 2
    assert verify(place.earlier) == []


@pytest.mark.parametrize(
    "wish",
    [
        Wish(),
        Wish(images=("zz",)),
        Wish(domains=("example",)),
        Wish(entities=("Li",)),
        Wish(urls=("something",)),
    ],
)
def test_wishes_that_cannot_be_read(place: Place, wish: Wish) -> None:
    with pytest.raises(ConfigError):
        takedown(place.home, wish)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("said Tomás Okafor.", True),
        ("said TOMAS OKAFOR.", True),
        ('{"a":"Tom\\u00e1s Okafor"}', True),
        ("Tom&#225;s&nbsp;Okafor", True),
        ("Tomás Okaforov", False),
        ("https://www.a.example/p/1.jpg", True),
        ("http:\\/\\/a.example\\/p\\/1.jpg", True),
        ("https://a.example/p/1.jpg?w=100", True),
        ("https://a.example/p/1.jpgx", False),
        ("https://b.a.example/p/1.jpg", False),
        ("https://img.news.example/x", True),
        ("https://fakenews.example/x", False),
        ("news.example.org", False),
    ],
)
def test_needles_in_text(text: str, found: bool) -> None:
    needles = Needles(
        names=frozenset({NAME}),
        urls=frozenset({"https://a.example/p/1.jpg"}),
        domains=frozenset({"news.example"}),
    )
    assert needles.in_text(text) is found
    assert needles.in_bytes(text.encode()) is found
