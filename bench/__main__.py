"""All measurements that need no corpus, each against its stated peer: `make bench`, or `python -m bench NAME ...`.

Sizes are chosen so that the whole takes some minutes on two cores; each script has its own options for the full ones
(`python -m bench.score --help`). Those over public corpora take the corpus's path: bench.news_text, bench.news_dates,
bench.news_images, bench.news_feeds.
"""

from __future__ import annotations

import runpy
import sys
import time

PARTS: dict[str, list[str]] = {
    "news_fetch": ["--pages", "2000", "--collect", "300"],
    "news_memory": ["--small", "200", "--large", "1000"],
    "ask": ["--items", "1000"],
    "annotate": [],
    "annotate_shards": ["--images", "120", "--shard-images", "12"],
    "prefect_overhead": ["--images", "400"],
    "fan_out": [],
    "snapshot": ["--rows", "500"],
    "rose_running": ["400"],
    "rose_websense": [],
    "score": ["--samples", "600", "--many", "20000"],
}


def main(names: list[str]) -> int:
    """Run the named parts, or all; the exit code is the number of parts that failed."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.stderr.write(f"no measurement is called {', '.join(unknown)}: there are {', '.join(PARTS)}\n")
        return 2
    failed = 0
    for name in names or PARTS:
        sys.stdout.write(f"\n== {name} {' '.join(PARTS[name])}\n")
        sys.stdout.flush()
        started, before = time.monotonic(), sys.argv
        sys.argv = [f"bench.{name}", *PARTS[name]]
        try:
            runpy.run_module(f"bench.{name}", run_name="__main__")
        except SystemExit as ended:
            failed += bool(ended.code)
        finally:
            sys.argv = before
        sys.stdout.write(f"({time.monotonic() - started:.0f} s)\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
