"""ROSE's ablation over a finished snapshot: the bare segmenter, IRAG, +TPE, +VPE, full, and with WebSense.

    python -m bench.rose_ablation HOME [--segmenter portable]

HOME is that of a finished `nest demo`; the index is made of its articles and the bundled references. Printed are
gIoU, cIoU and accuracy with intervals against the snapshot's masks and against the known truth, and seconds per module
and sample. The sample week is made up and its references show the same things, so the gain is by construction.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from engine.core.config import Config, RoseSection
from engine.core.schema import Article, Prediction, Timing
from engine.core.store import Home, StageDir
from engine.web.search.local import LocalIndex
from flows.sample.config import REFERENCES
from flows.sample.scoring import truth_by_sample
from inference import predict
from inference.benchmarks.nest import load
from inference.metrics.score import score
from inference.rose.ablation import ablation
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make


def articles(home: Home) -> list[Article]:
    """The articles of the one finished collect stage. Raises SystemExit if there is not exactly one."""
    stages = [path for path in (home.root / "windows").glob("*/collect/*") if (path / "manifest.json").is_file()]
    if len(stages) != 1:
        raise SystemExit(f"{home.root} holds {len(stages)} finished collect stages: run 'nest demo' into a new home")
    return StageDir(stages[0]).read(Article)


def main(arguments: list[str] | None = None) -> None:
    """Run all rows and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--segmenter", default="portable")
    options = parser.parse_args(arguments)
    home = Home(options.home)
    (folder,) = [path for path in (home.root / "snapshots").glob("NEST_*") if path.is_dir()]
    benchmark = load(folder)
    items = [sample.item() for sample in benchmark]
    config = Config(home=home.root, rose=RoseSection(answerer="extract"))
    rows: dict[str, list[Prediction]] = {}
    spent: dict[str, list[Timing]] = {}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "index.sqlite"
        index = LocalIndex.build(path, articles(home), blobs=home.blobs, references=REFERENCES)
        deps = InferenceDeps(search=index)
        for name in ablation(options.segmenter):
            runner = make(name, config, deps=deps)
            rows[name], spent[name] = asyncio.run(predict.run(items, config.score, deps=predict.PredictDeps(runner)))
            sys.stderr.write(f"{name}: {len(rows[name])} predictions\n")
        index.close()
    report = score(benchmark, rows, truths={"known truth": truth_by_sample(folder)})
    for row in report.rows:
        if not row.split:
            sys.stdout.write(f"{row.model_dump_json(exclude_none=True)}\n")
    for name, timings in spent.items():
        seconds: dict[str, float] = defaultdict(float)
        for timing in timings:
            seconds[timing.module] += timing.seconds
        shown = ", ".join(f"{module} {total / len(items):.3f}" for module, total in sorted(seconds.items()))
        sys.stdout.write(f"{name}: seconds per sample: {shown}\n")


if __name__ == "__main__":
    main()
