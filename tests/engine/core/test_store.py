"""The store: commits are all or nothing, keys follow inputs, locks die with their holder."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.core.errors import ConfigError, RefusedError, TerminalError
from engine.core.schema import Code, Rejected, Stage
from engine.core.store import BlobStore, StageDir, committed_directory, locked, stage_key, sweep, write_atomic


def _lost(name: str) -> Rejected:
    return Rejected(item=name, stage=Stage.COLLECT, code=Code.NO_DATE, detail="ä")


def test_a_blob_is_named_by_its_bytes_and_checked(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    name = blobs.put(b"abc", "jpg")
    assert blobs.get(name, "jpg") == b"abc" == blobs.get(name)
    blobs.path(name, "jpg").write_bytes(b"abd")
    with pytest.raises(TerminalError, match="damaged"):
        blobs.get(name, "jpg")
    assert blobs.put(b"abc", "jpg") == name
    with pytest.raises(ValueError, match="not the name"):
        blobs.path("../../etc/passwd", "jpg")


def test_a_failed_body_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with committed_directory(tmp_path / "x") as folder:
            (folder / "a").write_text("a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", [".", "folder", "file/x", "file/x/y"])
def test_a_path_that_cannot_be_is_a_mistake_of_the_command(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("kept")
    with pytest.raises((ConfigError, TerminalError), match=r"a folder|is a file"):
        write_atomic(Path(where), b"new")
    assert Path("file").read_text() == "kept"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


def test_the_first_commit_of_a_directory_stays(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with committed_directory(tmp_path / "x") as folder:
            (folder / "a").write_text(text)
    assert (tmp_path / "x" / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_order_of_work_does_not_show(tmp_path: Path) -> None:
    items = [_lost(name) for name in ("b", "a", "c")]
    for folder, order in (("one", items), ("two", items[::-1])):
        place = StageDir(tmp_path / folder / "key")
        place.commit([], order, stage="collect", found=3, run={"seconds": len(folder)})
    read = [(tmp_path / folder / "key" / "rejected.jsonl").read_bytes() for folder in ("one", "two")]
    assert read[0] == read[1]
    assert StageDir(tmp_path / "one" / "key").funnel().rejected == {"no_date": 3}
    assert StageDir(tmp_path / "one" / "key").rejected() == sorted(items, key=lambda item: item.item)


def test_a_changed_file_is_found(tmp_path: Path) -> None:
    place = StageDir(tmp_path / "key")
    place.commit([], [_lost("a")], stage="collect", found=1)
    place.check()
    (place.path / "rejected.jsonl").write_text("")
    with pytest.raises(TerminalError, match="differs"):
        place.check()


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    place = StageDir(tmp_path / "key")
    place.commit([], [_lost("a")], stage="collect", found=1)
    (place.path / "rejected.jsonl").write_text('{"item": 1}\n')
    with pytest.raises(TerminalError, match=r"rejected\.jsonl, line 1"):
        place.rejected()


def test_shards_are_committed_once(tmp_path: Path) -> None:
    place = StageDir(tmp_path / "key")
    place.commit_shard(0, [], [_lost("a")])
    place.commit_shard(0, [], [_lost("b")])
    assert [item.item for item in place.read_shards(Rejected, 1)[1]] == ["a"]
    assert place.shard_done(0)
    assert not place.finished


@given(st.dictionaries(st.text(max_size=5), st.integers()), st.lists(st.text(max_size=5), max_size=3))
def test_a_key_depends_on_values_not_on_order(config: dict[str, int], inputs: list[str]) -> None:
    turned = dict(reversed(list(config.items())))
    assert stage_key("s", "1", config, inputs) == stage_key("s", "1", turned, inputs)
    assert stage_key("s", "1", config, inputs) != stage_key("s", "2", config, inputs)
    assert stage_key("s", "1", config, inputs) != stage_key("s", "1", config, [*inputs, "x"])


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    with locked(tmp_path / "l"), pytest.raises(RefusedError, match=str(os.getpid())), locked(tmp_path / "l"):
        pass
    with locked(tmp_path / "l"):
        pass


def test_a_killed_holder_frees_its_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from engine.core.store import locked\n"
        "with locked(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "l")], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(RefusedError), locked(tmp_path / "l"):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    with locked(tmp_path / "l", wait_s=5):
        pass


def test_sweep_takes_only_rubbish(tmp_path: Path) -> None:
    write_atomic(tmp_path / "good", b"x")
    (tmp_path / ".tmp-1-x").mkdir()
    (tmp_path / ".tmp-2-y").write_text("half")
    assert sweep(tmp_path) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_an_unwritable_disk_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TerminalError, match="cannot be written"):
        write_atomic(tmp_path / "file" / "below", b"x")


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    """A writer that is killed at a random moment leaves one of its versions, whole."""
    path = tmp_path / "f.json"
    write_atomic(path, b'{"n": 0}')
    code = (
        "import sys; from pathlib import Path; from engine.core.store import write_atomic\n"
        "n = 0\nwhile True:\n    n += 1\n"
        '    write_atomic(Path(sys.argv[1]), b\'{"n": %d, "pad": "%s"}\' % (n, b\'x\' * 100000))'
    )
    for delay in (0.3, 0.45):
        writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert json.loads(path.read_bytes())["n"] >= 0


WRITER = (
    "import os, sys, time\nfrom pathlib import Path\nfrom engine.core.store import register_writer\n"
    "home = Path(sys.argv[1])\nprint(register_writer(home), flush=True)\n"
    "(home / 'blobs' / 'ab').mkdir(parents=True, exist_ok=True)\n"
    "(home / 'blobs' / 'ab' / f'.tmp-{os.getpid()}').write_text('half')\n"
    "time.sleep(float(sys.argv[2]))\n"
    "(home / 'blobs' / 'ab' / f'.tmp-{os.getpid()}').unlink()\n"
)


def _writer(home: Path, seconds: float) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", WRITER, str(home), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_what_a_killed_writer_left_is_swept_by_the_next_that_is_alone(tmp_path: Path) -> None:
    def leftovers() -> int:
        return len(list(tmp_path.rglob(".tmp-*")))

    living, killed = _writer(tmp_path, 60), _writer(tmp_path, 60)
    deadline = time.monotonic() + 30
    while leftovers() < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    beside = _writer(tmp_path, 0)
    assert beside.communicate(timeout=30)[0] == "0\n"  # somebody lives: nothing is swept
    assert leftovers() == 2
    living.send_signal(signal.SIGKILL)
    living.wait()
    assert _writer(tmp_path, 0).communicate(timeout=30)[0] == "2\n"
    assert leftovers() == 0
    assert not (tmp_path / ".writing").exists()
    assert _writer(tmp_path / "not" / "there", 0).communicate(timeout=30)[0] == "0\n"
    for process in (living, killed):
        assert process.stdout is not None
        process.stdout.close()


def test_a_shard_that_is_cut_or_torn_is_made_again(tmp_path: Path) -> None:
    """Marked as done with an empty file, under way, and never begun are all still to do; a whole one is kept."""
    place = StageDir(tmp_path / "key")
    for index in range(3):
        place.commit_shard(index, [_lost(f"item{index}")], [])
    (place.shard(1) / "part-00000.jsonl").write_bytes(b"")
    (place.shard(2) / "manifest.json").write_bytes(b'{"kept"')
    (tmp_path / "key" / "shards" / ".tmp-0-00003").mkdir()
    assert [index for index in range(5) if not place.shard_done(index)] == [1, 2, 3, 4]
    for index in (1, 2):
        place.commit_shard(index, [_lost(f"again{index}")], [])
    assert [place.read_shards(Rejected, 3)[0][index].item for index in range(3)] == ["item0", "again1", "again2"]
    before = (place.shard(0) / "run.json").read_bytes()
    place.commit_shard(0, [_lost("other")], [], run={"seconds": 1})
    assert (place.shard(0) / "run.json").read_bytes() == before
    assert place.sweep() == 1


def test_an_empty_manifest_is_no_finished_stage(tmp_path: Path) -> None:
    place = StageDir(tmp_path / "key")
    place.path.mkdir()
    (place.path / "manifest.json").write_bytes(b"")
    assert not place.finished
    place.commit([], [_lost("a")], stage="collect", found=1)
    assert place.finished


def test_shards_of_another_size_are_never_mixed(tmp_path: Path) -> None:
    place = StageDir(tmp_path / "key")
    place.agree("64 images")
    place.commit_shard(0, [_lost("a")], [])
    place.agree("64 images")
    assert place.shard_done(0)
    with locked(place.path / ".shard-00001.lock"), pytest.raises(RefusedError, match="shards of 64 images"):
        place.agree("2 images")
    place.agree("2 images")
    assert not place.shard_done(0)


def test_what_a_killed_run_left_is_told_from_what_is_done(tmp_path: Path) -> None:
    """The journal of another tool, cut in its last line, as states of our shards: exactly the same items are to do."""
    case = Path(__file__).resolve().parents[2] / "data" / "cases" / "54-resume-journal"
    items = (case / "items.txt").read_text().split()
    place = StageDir(tmp_path / "key")
    for line in (case / "journal.jsonl").read_text().splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue  # torn: it never came to a commit
        index = items.index(told["item"])
        if told["state"] == "done":
            place.commit_shard(index, [_lost(told["item"])], [])
            if not (case / "out" / told["out"]).read_bytes():
                (place.shard(index) / "part-00000.jsonl").write_bytes(b"")
        elif told["state"] == "refused":
            place.commit_shard(index, [], [_lost(told["item"])])
        else:
            (place.path / "shards" / f".tmp-{index}-{told.get('try', 1)}").mkdir(parents=True, exist_ok=True)
    expected = json.loads((case / "expected.json").read_text())
    assert [item for index, item in enumerate(items) if not place.shard_done(index)] == expected["todo"]
    done = [item for index, item in enumerate(items) if place.shard_done(index)]
    assert done == expected["done"] + expected["final"]
