"""ROSE's ablation: the bare segmenter, IRAG, +TPE, +VPE, full, and with WebSense, in one run.

    python -m bench.rose_ablation HOME [--segmenter portable]       over the snapshot of a finished `nest demo`, as
                                                                    `nest score WINDOW --ablation portable` does
    python -m bench.rose_ablation --synthetic 12                    over scenes of the harder synthetic set

Printed are gIoU, cIoU and accuracy with 95 % intervals per row, and seconds per module and sample. Both sets are made
up, and the index holds pages and pictures of what is asked for: the gain is by construction, and shows that the modules
work together, not what they gain on real news.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.core.config import Config, RoseSection
from engine.core.schema import Article, Estimate, Prediction, Timing
from engine.core.store import BlobStore, Home, StageDir
from engine.web.search.local import LocalIndex
from inference import predict
from inference.benchmarks.base import Benchmark
from inference.benchmarks.nest import load
from inference.metrics.score import score
from inference.report.ablation import ablation_table
from inference.report.costs import costs_table, module_costs
from inference.report.text import plain_table
from inference.rose.ablation import ablation
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.registry import make


def articles_of(home: Home) -> list[Article]:
    """The articles of the one finished collect stage. Raises SystemExit if there is not exactly one."""
    stages = [path for path in (home.root / "windows").glob("*/collect/*") if (path / "manifest.json").is_file()]
    if len(stages) != 1:
        raise SystemExit(f"{home.root} holds {len(stages)} finished collect stages: run 'nest demo' into a new home")
    return StageDir(stages[0]).read(Article)


def run(
    benchmark: Benchmark,
    articles: Sequence[Article],
    *,
    blobs: BlobStore,
    references: Path,
    segmenter: str,
    truths: Mapping[str, Any],
) -> None:
    """Predict all rows, score them, print."""
    config = Config(rose=RoseSection(answerer="extract"))
    items = [sample.item() for sample in benchmark]
    rows: dict[str, list[Prediction]] = {}
    spent: dict[str, list[Timing]] = {}
    with tempfile.TemporaryDirectory() as place:
        index = LocalIndex.build(Path(place) / "index.sqlite", articles, blobs=blobs, references=references)
        for name in ablation(segmenter):
            runner = make(name, config, deps=InferenceDeps(search=index))
            rows[name], spent[name] = asyncio.run(predict.run(items, config.score, deps=predict.PredictDeps(runner)))
            sys.stderr.write(f"{name}: {len(rows[name])} predictions\n")
        index.close()
    report = score(benchmark, rows, truths=truths)
    for truth in report.truths:
        table = ablation_table(report, truth.name)
        if table is not None:
            sys.stdout.write(f"against {truth.name}, {len(items)} samples\n{plain_table(table)}\n\n")
    for comparison in report.comparisons:
        if comparison.second == segmenter and comparison.metric == "giou":
            shown = _told(comparison.difference)
            sys.stdout.write(f"{comparison.truth}: {comparison.first} - {comparison.second}: gIoU {shown}\n")
    spent_all = [cost for timings in spent.values() for cost in module_costs(timings, samples=len(items))]
    sys.stdout.write(f"\n{plain_table(costs_table(spent_all))}\n")


def _told(figure: Estimate) -> str:
    if figure.value is None:
        return "-"
    interval = f" [{figure.low:.3f}, {figure.high:.3f}]" if figure.low is not None and figure.high is not None else ""
    return f"{figure.value:.3f}{interval}"


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments and run all rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path, nargs="?")
    parser.add_argument("--segmenter", default="portable")
    parser.add_argument("--synthetic", type=int, metavar="SCENES", default=0)
    options = parser.parse_args(arguments)
    if options.home is None:
        # the set is the tests' own
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
        from bench.rose_synthetic import build

        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            benchmark, articles = build(options.synthetic or 12, folder / "references")
            run(
                benchmark,
                articles,
                blobs=BlobStore(folder / "blobs"),
                references=folder / "references",
                segmenter=options.segmenter,
                truths={},
            )
        return
    from flows.sample.config import REFERENCES
    from flows.sample.scoring import truth_by_sample

    home = Home(options.home)
    (folder,) = [path for path in (home.root / "snapshots").glob("NEST_*") if path.is_dir()]
    run(
        load(folder),
        articles_of(home),
        blobs=home.blobs,
        references=REFERENCES,
        segmenter=options.segmenter,
        truths={"known truth": truth_by_sample(folder)},
    )


if __name__ == "__main__":
    main()
