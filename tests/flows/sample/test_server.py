"""The sample publishers answer over HTTP as three sites do."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from collections.abc import Iterator

import feedparser
import pytest

from engine.core.config import load_config
from flows.sample.articles import SITES, stories
from flows.sample.config import sample_overrides
from flows.sample.pages import MADE_UP
from flows.sample.server import SamplePublishers


@pytest.fixture(scope="module")
def publishers() -> Iterator[SamplePublishers]:
    with SamplePublishers() as running:
        yield running


def _get(
    publishers: SamplePublishers, host: str, path: str, **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", publishers.port, timeout=10)
    try:
        connection.request("GET", path, headers={"Host": host, **headers})
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def test_lists_name_every_story(publishers: SamplePublishers) -> None:
    for site in SITES.values():
        status, _, body = _get(publishers, site.host, site.list_path)
        assert status == 200
        mine = [story for story in stories() if story.site == site]
        if site.list_kind == "sitemap":
            for story in mine:
                assert f"<loc>{story.url}</loc>" in body.decode()
            continue
        feed = feedparser.parse(body)
        assert not feed.bozo
        links = {entry.link for entry in feed.entries}
        for story in mine:
            assert {story.url, f"{site.base}/go/{story.slug}"} & links, story.slug


def test_pages_say_that_they_are_made_up(publishers: SamplePublishers) -> None:
    for story in stories():
        status, headers, body = _get(publishers, story.site.host, story.path)
        assert status == (410 if story.gone else 200)
        if story.gone:
            continue
        assert headers["Content-Type"] == f"text/html; charset={story.encoding}"
        text = body.decode(story.encoding)
        assert MADE_UP.split(";")[0] in text
        for picture in story.pictures:
            assert f"/images/{picture.file}" in text


def test_the_host_decides(publishers: SamplePublishers) -> None:
    story = stories()[0]
    others = [site.host for site in SITES.values() if site != story.site]
    assert _get(publishers, others[0], story.path)[0] == 404
    assert _get(publishers, "elsewhere.example", story.path)[0] == 421
    assert _get(publishers, f"{story.site.host}:{publishers.port}", story.path)[0] == 200


def test_redirect_robots_pictures_and_what_is_not_there(publishers: SamplePublishers) -> None:
    status, headers, _ = _get(publishers, "circuit-courier.example", "/go/quiet-home-test")
    assert status == 302
    assert headers["Location"].endswith("/technology/quiet-home-test")
    assert "Disallow: /members/" in _get(publishers, "circuit-courier.example", "/robots.txt")[2].decode()
    status, headers, body = _get(publishers, "harbour-herald.example", "/images/line-9.jpg")
    assert (status, headers["Content-Type"], body[:2]) == (200, "image/jpeg", b"\xff\xd8")
    for path in ("/images/none.jpg", "/images/../pages.py", "/images/%2e%2e/pages.py", "/nothing"):
        assert _get(publishers, "harbour-herald.example", path)[0] == 404


def test_gzip_only_where_asked(publishers: SamplePublishers) -> None:
    host = "valley-voice.example"
    _, plain_headers, plain = _get(publishers, host, "/news-sitemap.xml")
    _, packed_headers, packed = _get(publishers, host, "/news-sitemap.xml", **{"Accept-Encoding": "gzip"})
    assert plain_headers["Content-Encoding"] is None
    assert packed_headers["Content-Encoding"] == "gzip"
    assert len(packed) < len(plain)


def test_starts_quickly_and_leaves_the_port() -> None:
    began = time.perf_counter()
    with SamplePublishers() as first:
        port = first.port
        assert _get(first, "harbour-herald.example", "/robots.txt")[0] == 200
    # generous: a loaded machine; idle it is a few milliseconds
    assert time.perf_counter() - began < 2.0
    with SamplePublishers(port=port) as second:
        assert second.port == port
    with pytest.raises(RuntimeError, match="not running"):
        _ = first.port


def test_counts_requests() -> None:
    with SamplePublishers() as running:
        _get(running, "harbour-herald.example", "/feed.xml?x=1")
        _get(running, "harbour-herald.example", "/feed.xml")
        assert running.hits["http://harbour-herald.example/feed.xml"] == 2


def test_overrides_make_a_config() -> None:
    config = load_config(None, environ={}, overrides=sample_overrides(8123))
    assert {source.name for source in config.source} == set(SITES)
    assert set(config.collect.resolve.values()) == {"127.0.0.1:8123"}
    assert set(config.collect.allow_hosts) == {site.host for site in SITES.values()}
    assert config.ask.writer == "template"
    assert (config.annotate.detector, config.annotate.mask_model) == ("portable", "portable")
    assert config.annotate.references is not None
    assert config.annotate.references.is_dir()
    assert config.score.segmenters == ("portable", "rose:portable")


def test_importing_it_brings_nothing_heavy() -> None:
    program = (
        "import sys, flows.sample.server, flows.sample.config, flows.sample.truth\n"
        "print(sorted({'numpy', 'cv2', 'PIL', 'torch', 'prefect', 'datasets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
