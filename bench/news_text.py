"""Body text against public corpora: F1 by the corpus' own evaluator, and pages per second with everything extracted.

    python -m bench.news_text aeb CORPUS            article-extraction-benchmark (181 pages, shingle F1)
    python -m bench.news_text trafilatura CORPUS    trafilatura's evaluation set (with/without text chunks)
                              [--part mended|unseen]

CORPUS is a checkout of the corpus' repository; nothing of it is kept. The peer is trafilatura with its defaults, in
the same run on the same core. While the reading of summaries was made, only the pages of trafilatura's set whose
address has an even first byte of its sha256 were looked at (`--part mended`); the others show how it does on pages that
it was not made for.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Pages = list[tuple[str, str, bytes]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=("aeb", "trafilatura"))
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--limit", type=int, default=None, help="only so many pages")
    parser.add_argument("--worst", type=int, default=0, help="show so many pages with the lowest score")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--part", choices=("mended", "unseen"), default=None, help="half of trafilatura's set")
    found = parser.parse_args(argv)
    if found.set == "aeb":
        _aeb(found.corpus, found.limit, found.worst, peer=not found.no_peer)
    else:
        _trafilatura(found.corpus, found.limit, found.worst, peer=not found.no_peer, part=found.part)


#: Headlines as the engine reads them, by address.
TITLES: dict[str, str] = {}


def ours(body: bytes, url: str) -> str:
    """The engine's whole reading of a page, of which the text is scored."""
    from engine.news.extract import extract_page

    page = extract_page(body, url)
    TITLES[url] = page.title
    return page.text


def peer(body: bytes, url: str) -> str:
    """trafilatura as it comes, text only."""
    import trafilatura

    return trafilatura.extract(body, url=url or None, include_comments=False) or ""


def run(pages: Pages, read: Callable[[bytes, str], str]) -> tuple[dict[str, str], float]:
    """Texts by name, and pages per second after a warm-up page."""
    read(pages[0][2], pages[0][1])
    start = time.process_time()
    texts = {name: read(body, url) for name, url, body in pages}
    return texts, len(pages) / (time.process_time() - start)


def _aeb(corpus: Path, limit: int | None, worst: int, *, peer: bool) -> None:
    truth = json.loads((corpus / "ground-truth.json").read_text(encoding="utf-8"))
    truth = dict(list(truth.items())[:limit])
    evaluate = _module(corpus / "evaluate.py")
    pages = [
        (k, v.get("url", ""), gzip.decompress((corpus / "html" / f"{k}.html.gz").read_bytes()))
        for k, v in truth.items()
    ]
    for name, read in _readers(peer):
        texts, rate = run(pages, read)
        scored = evaluate.evaluate(truth, {k: {"articleBody": text} for k, text in texts.items()}, 200)
        print(
            f"{name:<24} F1 {scored['f1']:.4f} ± {scored['f1_std']:.3f}  P {scored['precision']:.4f}  "
            f"R {scored['recall']:.4f}  {rate:.1f} pages/s of one core"
        )
        if worst and name == "engine":
            one = {k: evaluate.string_shingle_matching(truth[k].get("articleBody", ""), texts[k]) for k in truth}
            for k in sorted(one, key=lambda k: one[k][0])[:worst]:
                tp, fp, fn = one[k]
                print(f"  {k[:12]} tp {tp:.2f} fp {fp:.2f} fn {fn:.2f} {truth[k].get('url', '')[:90]}")


def _trafilatura(corpus: Path, limit: int | None, worst: int, *, peer: bool, part: str | None) -> None:
    """Chunks that must be in the text and chunks that must not, as in the corpus' own evaluation."""
    root = corpus / "tests"
    truth = dict(list(json.loads((root / "evaldata.json").read_text(encoding="utf-8")).items())[:limit])
    if part is not None:
        odd = part == "unseen"
        truth = {url: item for url, item in truth.items() if hashlib.sha256(url.encode()).digest()[0] % 2 == odd}
    common = _module(root / "eval_common.py")
    pages = []
    for url, item in truth.items():
        place = next(
            (root / part / item["file"] for part in ("cache", "eval") if (root / part / item["file"]).is_file()), None
        )
        if place is not None:
            pages.append((url, url, place.read_bytes()))
    for name, read in _readers(peer):
        texts, rate = run(pages, read)
        print(f"{name:<24} {len(pages)} pages  {rate:.1f} pages/s, one core")
        for told, head in (("text alone", False), ("with headline", True)):
            tp = fp = fn = 0
            bad: list[tuple[int, str]] = []
            for url, _, _ in pages:
                # the corpus counts the headline as text, and the engine keeps it apart: so it is put before both
                text = f"{TITLES.get(url, '')}\n{texts[url]}" if head else texts[url]
                t, f, m, _ = _count(common, text, truth[url])
                tp, fp, fn = tp + t, fp + f, fn + m
                bad.append((f + m, url))
            precision, recall = tp / (tp + fp), tp / (tp + fn)
            f1 = 2 * precision * recall / (precision + recall)
            print(f"  {told:<14} F1 {f1:.4f} P {precision:.4f} R {recall:.4f}")
            if worst and name == "engine" and not head:
                for count, url in sorted(bad, reverse=True)[:worst]:
                    print(f"  {count} wrong chunks {url}")


def _count(common: Any, text: str, item: dict[str, Any]) -> tuple[int, int, int, int]:
    """The corpus' own counting if it offers it, else its rule restated: a chunk counts if the text holds it."""
    tp = fp = fn = tn = 0
    squeezed = " ".join(text.split())
    for chunk in item["with"]:
        if " ".join(chunk.split()) in squeezed:
            tp += 1
        else:
            fn += 1
    for chunk in item["without"]:
        if " ".join(chunk.split()) in squeezed:
            fp += 1
        else:
            tn += 1
    return tp, fp, fn, tn


def _readers(with_peer: bool) -> list[tuple[str, Callable[[bytes, str], str]]]:
    return [("engine", ours), *([("trafilatura defaults", peer)] if with_peer else [])]


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        sys.exit(f"{path} is not there: is this a checkout of the corpus?")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
