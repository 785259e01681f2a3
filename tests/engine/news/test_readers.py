"""Reading in processes: the same bytes, bounded, no process left behind, one that dies takes nothing with it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.loopback import Site
from support.newsroom import Item, Publisher, collect_config, photo

from engine.core.config import SourceSection
from engine.core.images import ImageError
from engine.core.schema import Article, Code, ImageClaim, Link, Rejected
from engine.core.store import BlobStore
from engine.core.windows import parse_window
from engine.news.collect import run
from engine.news.deps import NewsDeps
from engine.news.find import find
from engine.news.photos import read_photo
from engine.news.readers import ReaderDied, Readers, readers
from engine.web.client import WebClient

HOST = "harbour.example"
WINDOW = parse_window("2026-03-02..2026-03-08")


async def collected(site: Site, blobs: Path, *, processes: int) -> list[Article | Rejected]:
    config = collect_config(site.netloc, HOST)
    source = SourceSection(name="harbour", type="feed", url=f"http://{HOST}/feed.xml")
    async with WebClient(config, cache=None) as fetcher, readers(processes) as reading:
        deps = NewsDeps(fetcher=fetcher, blobs=BlobStore(blobs), readers=reading)
        found = await find(WINDOW, [source], config, deps=deps)
        return await run([item for item in found if isinstance(item, Link)], config, window=WINDOW, deps=deps)


async def test_processes_give_the_same_records_in_the_same_order(tmp_path: Path) -> None:
    items = [
        Item(f"/n/{n}", f"2026-03-0{2 + n % 7}T09:00:00Z", images=[(f"/i/{n}.jpg", f"The mayor, day {n}")])
        for n in range(12)
    ]
    photos = {f"/i/{n}.jpg": photo(n) for n in range(12)} | {"/i/3.jpg": photo(3)[:9000], "/i/4.jpg": b"<html></html>"}
    routes = Publisher(HOST, items, photos).routes()
    async with Site(routes) as site:
        alone = await collected(site, tmp_path / "a", processes=1)
        several = await collected(site, tmp_path / "b", processes=2)
    assert [item.line() for item in several] == [item.line() for item in alone]
    assert sum(isinstance(item, Article) for item in alone) == 10
    codes = {item.code for item in several if isinstance(item, Rejected)}
    assert codes == {Code.NO_IMAGE, Code.IMAGE_TRUNCATED, Code.IMAGE_NOT_AN_IMAGE}
    stored = {path.name for path in (tmp_path / "a").rglob("*.*")}
    assert stored == {path.name for path in (tmp_path / "b").rglob("*.*")}


async def test_there_are_as_many_processes_as_asked_for_and_none_afterwards() -> None:
    async with readers(2) as reading:
        await asyncio.gather(*(reading.call(time.sleep, 0.05) for _ in range(20)))
        there = set(await asyncio.gather(*(reading.call(os.getpid) for _ in range(20))))
    assert 1 <= len(there) <= 2
    assert os.getpid() not in there
    assert not any(map(alive, there))


async def test_what_a_reader_raises_is_raised_here() -> None:
    claim = ImageClaim(url="https://x.example/i.jpg")
    async with readers(2) as reading:
        with pytest.raises(ImageError, match="no known image format") as caught:
            await reading.call(read_photo, b"<html>not here</html>", claim, min_side_px=64)
    assert caught.value.code is Code.IMAGE_NOT_AN_IMAGE


async def test_a_piece_that_ends_its_process_is_lost_alone() -> None:
    async with readers(2) as reading:
        given = await asyncio.gather(
            *(reading.call(os._exit, 3) if n == 4 else reading.call(abs, -n) for n in range(9)),
            return_exceptions=True,
        )
        assert isinstance(given[4], ReaderDied)
        assert [value for n, value in enumerate(given) if n != 4] == [0, 1, 2, 3, 5, 6, 7, 8]
        assert await reading.call(abs, -10) == 10


async def test_a_page_that_ends_its_reader_is_a_loss_with_a_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [Item(f"/n/{n}", "2026-03-04T09:00:00Z", images=[("/i/a.jpg", "The mayor")]) for n in range(3)]

    class Fragile(Readers):
        async def call(self, work, /, *args, **more):  # type: ignore[no-untyped-def]
            if args[1:] and str(args[1]).endswith("/n/1"):
                raise ReaderDied("reading it ended the process that read it")
            return await super().call(work, *args, **more)

    monkeypatch.setattr("engine.news.readers.Readers", Fragile)
    async with Site(Publisher(HOST, items, {"/i/a.jpg": photo(1)}).routes()) as site:
        found = await collected(site, tmp_path, processes=1)
    assert [item.url[-2:] for item in found if isinstance(item, Article)] == ["/0", "/2"]
    assert [(item.item[-2:], item.code) for item in found if isinstance(item, Rejected)] == [("/1", Code.NO_TEXT)]


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a thing of POSIX")
@pytest.mark.parametrize("busy", [True, False])
def test_no_process_outlives_a_killed_parent(busy: bool) -> None:
    script = (
        "import asyncio, os, time\n"
        "from engine.news.readers import Readers\n"
        "async def main():\n"
        "    reading = Readers(2)\n"
        "    pids = set(await asyncio.gather(*(reading.call(os.getpid) for _ in range(20))))\n"
        f"    jobs = [asyncio.create_task(reading.call(time.sleep, 600)) for _ in range({4 * busy})]\n"
        "    await asyncio.sleep(0.2)\n"
        "    print(*pids, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert pids
        assert all(map(alive, pids))
        parent.send_signal(signal.SIGKILL)
        until = time.monotonic() + 20
        while any(map(alive, pids)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(alive, pids))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return not Path("/proc/self").exists()
