"""Lead picture and caption against a truth that was made by hand: 113 pages of two public corpora.

    python -m bench.news_images --aeb CORPUS --htmldate CORPUS [--wrong] [--part mended|unseen]

AEB is a checkout of article-extraction-benchmark, HTMLDATE one of htmldate (its mediacloud set); their pages are not
kept here. `news_images.json` holds facts only: the page's id and the first digits of its sha256, parts of addresses by
which the lead picture is known (in whichever size), and the first and last three words of its caption. The truth was
written down from the pages' markup before the engine's answer was looked at. Conventions: the lead is the main picture
in the head of the story, or the still of the video in that place, or, where the body shows none, the share picture if
it is the story's own; empty if there is none. A caption that is only a credit, or is only in a title attribute, is not
scored (null). The extractor was mended on the first 83 pages; the other 30 (`--part unseen`) were written down later
and show how it does on pages that it was not made for.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from engine.core.schema import ImageClaim
from engine.news.extract import extract_page

TRUTH = Path(__file__).with_suffix(".json")
#: Words of a credit that may stand before or after a caption in its own element.
CREDIT_WORDS = 12
#: So many pages, in the file's order, were looked at while the extractor was mended; the others were not.
MENDED = 83


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aeb", type=Path)
    parser.add_argument("--htmldate", type=Path)
    parser.add_argument("--wrong", action="store_true", help="show what was wrong")
    parser.add_argument("--part", choices=("mended", "unseen"), default=None)
    found = parser.parse_args(argv)
    pages = json.loads(TRUTH.read_text(encoding="utf-8"))["pages"]
    pages = {"mended": pages[:MENDED], "unseen": pages[MENDED:]}.get(found.part, pages)
    counts: Counter[str] = Counter()
    started = time.process_time()
    for item in pages:
        corpus = found.aeb if item["set"] == "aeb" else found.htmldate
        if corpus is None:
            counts["left out"] += 1
            continue
        body, url = _page(corpus, item)
        if hashlib.sha256(body).hexdigest()[:16] != item["sha256"]:
            counts["other bytes"] += 1
            continue
        images = extract_page(body, url).images
        lead = next((image for image in images if image.role == "lead"), None)
        verdict = judge(lead, item["answers"])
        counts.update(verdict)
        if found.wrong and any(word in verdict for word in ("lead wrong", "caption wrong", "lead missed")):
            told = f"{lead.url[-90:]} | {lead.caption[:60]!r}" if lead else "nothing"
            print(f"  {verdict} {item['id'][:16]} {url[:60]}\n      gave {told}\n      truth {item['answers'][0]}")
    _say(counts, time.process_time() - started)


def judge(lead: ImageClaim | None, answers: Sequence[dict[str, Any]]) -> list[str]:
    """What is to be counted for one page."""
    told = []
    wanted = any(answer["lead"] for answer in answers)
    told += ["pages", *(["leads there"] if wanted else []), *(["leads given"] if lead else [])]
    if lead is None:
        return [*told, *(["lead missed"] if wanted else ["lead right none"]), *_captions_there(answers)]
    place = unquote(lead.url)
    answer = next((answer for answer in answers if any(part in place for part in answer["lead"])), None)
    if answer is None:
        return [*told, "lead wrong", *_captions_there(answers)]
    told.append("lead right")
    if answer["caption"] is None:
        return told
    told += [*(["captions there"] if answer["caption"] else []), *(["captions given"] if lead.caption else [])]
    if not answer["caption"]:
        return [*told, *(["caption wrong"] if lead.caption else [])]
    return [*told, "caption right" if is_caption(lead.caption, answer["caption"]) else "caption wrong"]


def _captions_there(answers: Sequence[dict[str, Any]]) -> list[str]:
    return ["captions there"] if answers[0]["caption"] else []


def is_caption(given: str, truth: str) -> bool:
    """Whether a caption begins and ends with the truth's words, but for a credit of some words."""
    words = _words(given)
    first, last = (_words(part) for part in truth.split("|"))
    starts = [i for i in range(CREDIT_WORDS) if words[i : i + len(first)] == first]
    ends = [
        i for i in range(CREDIT_WORDS) if words[len(words) - i - len(last) : len(words) - i] == last and len(words) > i
    ]
    return bool(starts) and bool(ends)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _page(corpus: Path, item: dict[str, Any]) -> tuple[bytes, str]:
    if item["set"] == "aeb":
        truth = json.loads((corpus / "ground-truth.json").read_text(encoding="utf-8"))
        return gzip.decompress((corpus / "html" / f"{item['id']}.html.gz").read_bytes()), truth[item["id"]]["url"]
    truth = json.loads((corpus / "tests" / "eval_mediacloud_2020.json").read_text(encoding="utf-8"))
    url = next(url for url, entry in truth.items() if entry["file"] == item["id"])
    place = next(p for part in ("test_set", "cache", "eval") if (p := corpus / "tests" / part / item["id"]).is_file())
    return place.read_bytes(), url


def _say(counts: Counter[str], seconds: float) -> None:
    def share(part: str, whole: str) -> str:
        return f"{counts[part] / max(1, counts[whole]):.3f} ({counts[part]} of {counts[whole]})"

    print(
        f"{counts['pages']} pages in {seconds:.1f} CPU seconds; left out {counts['left out'] + counts['other bytes']}"
    )
    print(
        f"lead picture: precision {share('lead right', 'leads given')}, recall {share('lead right', 'leads there')}, "
        f"rightly none {counts['lead right none']}"
    )
    print(
        f"caption: precision {share('caption right', 'captions given')}, recall "
        f"{share('caption right', 'captions there')}"
    )


if __name__ == "__main__":
    main()
