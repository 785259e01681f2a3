"""Many small articles, and the ask stage over them as a process of its own that can be killed.

    python -m support.ask_scale URL HOME COUNT [IN_FLIGHT]

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
from pathlib import Path
from typing import Any

from engine.core.config import AskSection, LlmSection
from engine.core.schema import Article, Question, Rejected
from engine.core.store import StageDir
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger
from engine.questions.ask import run
from engine.questions.deps import make_deps
from support.articles import article
from support.llm_server import Scripted, completion

FIRST = ("Ilse", "Tomas", "Anna", "Piet", "Chiara", "Daniel", "Edda", "Otto", "Lina", "Ruben")
LAST = ("Brand", "Okaf", "Holm", "Quist", "Fontan", "Osei", "Krantz", "Wiel", "Petros", "Asant")
ENDS = ("vik", "or", "sen", "ell", "ski", "ova", "berg", "mann", "elli", "ou")
DID = ("opened", "closed", "painted", "measured", "repaired", "sold", "bought", "praised", "crossed", "named")
CONFIG = AskSection(public_figures="off")
SHARD = 32


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


async def work(url: str, home: Path, count: int, in_flight: int) -> dict[str, Any]:
    """The whole stage; finished shards are skipped. Returns what is printed."""
    llm = LlmSection(base_url=url, model="test-model", max_in_flight=in_flight, patience_s=60)
    stage = StageDir(home / "stage")
    kept = lost = 0
    memory: list[int] = []
    begun = time.monotonic()
    async with OpenAIChat(llm, api_key="test-key", cache=home / "llm", ledger=Ledger(home / "ledger")) as chat:
        for index, shard in enumerate(shards(count)):
            if not stage.shard_done(index):
                deps = make_deps(CONFIG, llm, chat=chat, articles=shard)
                found = await run(shard, CONFIG, deps=deps)
                questions = [item for item in found if isinstance(item, Question)]
                rejected = [item for item in found if isinstance(item, Rejected)]
                stage.commit_shard(index, questions, rejected)
                kept, lost = kept + len(questions), lost + len(rejected)
            if index % max(1, count // SHARD // 10) == 0:
                memory.append(resident_kb())
        spent = chat.ledger.spent()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": time.monotonic() - begun,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "kept": kept,
        "lost": lost,
        "requests": spent.requests,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "memory_kb": memory,
    }


def shards(count: int) -> Iterator[list[Article]]:
    for start in range(0, count, SHARD):
        yield [story(number) for number in range(start, min(start + SHARD, count))]


def resident_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


if __name__ == "__main__":
    arguments = sys.argv[1:]
    told = asyncio.run(work(arguments[0], Path(arguments[1]), int(arguments[2]), int((arguments[3:] or ["8"])[0])))
    sys.stdout.write(json.dumps(told) + "\n")
