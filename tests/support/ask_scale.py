"""Many small articles, and the ask stage over them as a process of its own that can be killed.

    python -m support.ask_scale URL HOME COUNT [IN_FLIGHT [SHARD]]

Works shard by shard and commits each, as a run does; prints one JSON line with seconds, CPU seconds and the resident
memory after each tenth of the work.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.config import AskSection, LlmSection
from engine.core.schema import Article, Question, Rejected
from engine.core.store import StageDir
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger
from engine.questions.ask import run_shards
from engine.questions.deps import make_deps
from support.articles import article
from support.llm_server import Scripted, completion

FIRST = ("Ilse", "Tomas", "Anna", "Piet", "Chiara", "Daniel", "Edda", "Otto", "Lina", "Ruben")
LAST = ("Brand", "Okaf", "Holm", "Quist", "Fontan", "Osei", "Krantz", "Wiel", "Petros", "Asant")
ENDS = ("vik", "or", "sen", "ell", "ski", "ova", "berg", "mann", "elli", "ou")
DID = ("opened", "closed", "painted", "measured", "repaired", "sold", "bought", "praised", "crossed", "named")
CONFIG = AskSection(public_figures="off")


def story(number: int) -> Article:
    """Article number so and so: about 1,500 characters, one captioned picture."""
    name = f"{FIRST[number % 10]} {LAST[number // 10 % 10]}{ENDS[number // 100 % 10]}"
    fact = f"{name} {DID[number // 1000 % 10]} bridge number {number} of the Northvale coast road on Tuesday."
    filler = " ".join(f"The wind on day {n} of that week came from the sea and brought little rain." for n in range(18))
    return article(
        f"{fact} {filler}", f"{name}, left, at the bridge.", title=f"Bridge {number}", url=f"http://x.example/{number}"
    )


def written(body: Any) -> Scripted:
    """A quick reply for one of these articles."""
    user = body["messages"][1]["content"]
    fact = user.split("Text:\n", 1)[1].split(". ", 1)[0] + "."
    name, rest = " ".join(fact.split()[:2]), " ".join(fact.split()[2:])
    pair = {
        "image": 1,
        "entity": name,
        "entity_type": "person",
        "phrase": "person",
        "position": "left",
        "question": f"Which person in the image {rest.rstrip('.')}?",
        "answer": name,
        "evidence": fact,
        "kind": "emerging",
        "aliases": [],
    }
    return completion(json.dumps({"pairs": [pair]}), tokens=(len(user) // 4, 90))


async def work(url: str, home: Path, count: int, in_flight: int, shard: int) -> dict[str, Any]:
    """The whole stage; finished shards are skipped. Returns what is printed."""
    llm = LlmSection(base_url=url, model="test-model", max_in_flight=in_flight, patience_s=60)
    stage = StageDir(home / "stage")
    kept: list[int] = []
    lost: list[int] = []
    memory: list[int] = []

    def done(index: int, found: list[Question | Rejected]) -> None:
        questions = [item for item in found if isinstance(item, Question)]
        rejected = [item for item in found if isinstance(item, Rejected)]
        stage.commit_shard(index, questions, rejected)
        kept.append(len(questions))
        lost.append(len(rejected))
        if index % max(1, count // shard // 10) == 0:
            memory.append(resident_kb())

    begun = time.monotonic()
    async with OpenAIChat(llm, api_key="test-key", cache=home / "llm", ledger=Ledger(home / "ledger")) as chat:
        # every shard is its own index: a window's would hold all articles, which is not what is measured
        deps = replace(make_deps(CONFIG, llm, chat=chat), index=None)
        todo = ((index, part) for index, part in enumerate(shards(count, shard)) if not stage.shard_done(index))
        await run_shards(todo, CONFIG, deps=deps, done=done)
        spent = chat.ledger.spent()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.monotonic() - begun,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "kept": sum(kept),
        "lost": sum(lost),
        "requests": spent.requests,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "memory_kb": memory,
    }


def shards(count: int, size: int) -> Iterator[list[Article]]:
    for start in range(0, count, size):
        yield [story(number) for number in range(start, min(start + size, count))]


def resident_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    url, home, *counts = sys.argv[1:]
    count, in_flight, shard = [*map(int, counts), *(8, 32)[len(counts) - 1 :]]
    told = asyncio.run(work(url, Path(home), count, in_flight, shard))
    sys.stdout.write(json.dumps(told) + "\n")
