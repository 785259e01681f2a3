"""WebSense as a classifier on the labelled questions: rules alone, and with a model that is wrong at a known rate.

    python -m bench.rose_websense

The model is a loopback server that knows the labels and errs about every n-th question, so the rows say what a model of
that error rate makes of the gate; the error rate of a given model has to be measured with that model. Precision and
recall are of "needs a search"; the peer is searching for everything.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)


async def measure(rate: float | None) -> tuple[float, float, float, float]:
    """Precision, recall, share sent to the model, and share searched; without a model for None."""
    from support.llm_server import LlmServer
    from support.websense import ROWS, figures, judging

    from engine.core.config import LlmSection
    from engine.llm.client import OpenAIChat
    from inference.rose.websense import WebSense

    if rate is None:
        verdicts = [await WebSense().decide(row["question"]) for row in ROWS]
        sent = 0
    else:
        with LlmServer(reply=judging(rate)) as server, tempfile.TemporaryDirectory() as cache:
            section = LlmSection(base_url=server.url, model="judge")
            async with OpenAIChat(section, api_key="test-key", cache=Path(cache)) as chat:
                verdicts = [await WebSense(chat).decide(row["question"]) for row in ROWS]
            sent = server.answered
    told = [(verdict.needed, row["needs_search"]) for verdict, row in zip(verdicts, ROWS, strict=True)]
    precision, recall = figures(told)
    return precision, recall, sent / len(ROWS), sum(said for said, _ in told) / len(told)


def main(arguments: list[str] | None = None) -> None:
    """Print a row per error rate."""
    from support.websense import ROWS, figures

    everything = figures([(True, row["needs_search"]) for row in ROWS])
    sys.stdout.write(f"{len(ROWS)} questions; searching for everything: precision {everything[0]:.3f}, recall 1.000\n")
    for rate in (None, *RATES):
        precision, recall, sent, searched = asyncio.run(measure(rate))
        who = "rules alone" if rate is None else f"model wrong at {100 * rate:.0f} %"
        sys.stdout.write(
            f"{who:18} precision {precision:.3f}  recall {recall:.3f}  sent to the model {100 * sent:.1f} %  "
            f"searched {100 * searched:.1f} %\n"
        )


if __name__ == "__main__":
    main()
