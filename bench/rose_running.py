"""How near the running of ROSE comes to its limit: 1,548 samples, 0.36 s of retrieval each, 16 in flight.

    python -m bench.rose_running [SAMPLES]

The peer is the limit itself: samples x latency / in flight. The time one after the other would take is computed, not
waited for. The search answers from memory after the latency, the models are blocks of colour, so that what is measured
is what goes on around them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

LATENCY_S = 0.36
SAMPLES = 1548


async def measure(count: int) -> tuple[float, int, int]:
    """Seconds, most retrievals in flight, and predictions made."""
    from support.slow_search import SlowSearch, config, deps, items

    from inference import predict
    from inference.segmenters.registry import make

    search = SlowSearch(latency_s=LATENCY_S)
    runner = make("rose:portable", config(), deps=deps(search))
    samples = items(count)
    began = time.perf_counter()
    found, _ = await predict.run(samples, config().score, deps=predict.PredictDeps(runner))
    return time.perf_counter() - began, search.most_in_flight, len(found)


def main(arguments: list[str] | None = None) -> None:
    """Print seconds, the limit, and their ratio."""
    given = sys.argv[1:] if arguments is None else arguments
    count = int(given[0]) if given else SAMPLES
    seconds, most, made = asyncio.run(measure(count))
    limit = count * LATENCY_S / 16
    sys.stdout.write(
        f"{made} samples, {LATENCY_S} s of retrieval each, {most} in flight: {seconds:.1f} s, the limit is "
        f"{limit:.1f} s, ratio {seconds / limit:.3f}; one after the other {count * LATENCY_S:.0f} s (computed)\n"
    )


if __name__ == "__main__":
    main()
