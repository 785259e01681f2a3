"""Speed and memory of scoring, against only decoding the masks and against a plain loop as in LISA's validation.

    python -m bench.score [--samples 1548] [--many 100000] [--folder DIR]

Data are made: smooth blobs of 1280x810 in a snapshot folder of the published layout. All figures of one run are
of the same data on the same machine; ratios are what counts. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.core.geometry import Mask
from engine.core.masks import decode_rle, encode_png, encode_rle
from engine.core.schema import Prediction
from inference.benchmarks.nest import load
from inference.metrics.score import score
from inference.report.publish import write_report

WIDTH, HEIGHT = 1280, 810
WORKERS = 2


def blob(rng: np.random.Generator) -> Mask:
    """A smooth random shape, as outlines of people and things are."""
    coarse = rng.normal(size=(9, 14)).astype(np.float32)
    smooth = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    cx, cy = rng.uniform(0.25, 0.75) * WIDTH, rng.uniform(0.25, 0.75) * HEIGHT
    rx, ry = rng.uniform(0.05, 0.3) * WIDTH, rng.uniform(0.1, 0.35) * HEIGHT
    inside: Mask = (((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 + 0.3 * smooth) < 1.0
    return inside


def make(folder: Path, samples: int) -> list[Prediction]:
    """A snapshot folder with 200 kB of picture bytes per row, and shifted masks as predictions."""
    rng = np.random.default_rng(0)
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("question", pa.string()),
            ("answer", pa.string()),
            ("images", pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))),
            ("annotations", pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))),
        ]
    )
    (folder / "data").mkdir(parents=True)
    predictions = []
    with pq.ParquetWriter(folder / "data" / "train-00000-of-00001.parquet", schema) as writer:
        for start in range(0, samples, 128):
            rows: list[dict[str, Any]] = []
            for index in range(start, min(start + 128, samples)):
                mask = blob(rng)
                name = f"s{index:06d}"
                rows.append(
                    {
                        "id": name,
                        "question": "Which one?",
                        "answer": "that one",
                        "images": [{"bytes": rng.bytes(200_000), "path": None}],
                        "annotations": [{"bytes": encode_png(mask), "path": None}],
                    }
                )
                moved = np.roll(mask, int(rng.integers(-60, 60)), axis=1)
                predictions.append(Prediction(sample_id=name, segmenter="model", masks=(encode_rle(moved),)))
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
    origin = [
        {"id": one.sample_id, "image_phashes": [f"{index:016x}"], "domain": f"d{index % 5}", "aliases": ["it"]}
        for index, one in enumerate(predictions)
    ]
    (folder / "provenance").mkdir()
    pq.write_table(pa.Table.from_pylist(origin), folder / "provenance" / "train-00000-of-00001.parquet")
    return predictions


def stored_pngs(folder: Path) -> Iterator[bytes]:
    """The annotation column, row by row."""
    for file in sorted((folder / "data").glob("*.parquet")):
        for batch in pq.ParquetFile(file, memory_map=True).iter_batches(batch_size=16, columns=["annotations"]):
            for cells in batch.column("annotations").to_pylist():
                yield cells[0]["bytes"]


def only_decode(folder: Path) -> float:
    """Decode every mask with OpenCV in two threads, as scoring does, and do nothing with it."""

    def decode(data: bytes) -> int:
        pixels: Any = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_UNCHANGED)
        return int(pixels.size)

    with ThreadPoolExecutor(WORKERS) as pool:
        return float(sum(pool.map(decode, stored_pngs(folder))))


def lisa_loop(folder: Path, predictions: list[Prediction]) -> float:
    """Our own plain loop over float histograms in torch, one mask after the other, as LISA validates."""
    import torch
    from PIL import Image as PilImage

    total_inter = total_union = torch.zeros(2)
    ious = []
    for data, prediction in zip(stored_pngs(folder), predictions, strict=True):
        truth = torch.from_numpy((np.asarray(PilImage.open(io.BytesIO(data))) > 0).astype(np.int32))
        rle = prediction.masks[0]
        assert rle is not None
        output = torch.from_numpy(np.ascontiguousarray(decode_rle(rle)).astype(np.int32))
        output = output.view(-1).clone()
        target = truth.view(-1)
        output[target == 255] = 255
        hit = output[output == target]
        inter = torch.histc(hit.float(), bins=2, min=0, max=1)
        union = torch.histc(output.float(), bins=2, min=0, max=1) + torch.histc(target.float(), bins=2, min=0, max=1)
        union = union - inter
        total_inter, total_union = total_inter + inter, total_union + union
        iou = inter / (union + 1e-5)
        iou[union == 0] += 1.0
        ious.append(float(iou[1]))
    return sum(ious) / len(ious)


def timed(function: Callable[[], float], repeat: int = 3) -> tuple[float, float, float]:
    """Best of some runs: seconds on the clock, processor seconds of all threads, and the result."""
    best, busy, result = float("inf"), float("inf"), 0.0
    for _ in range(repeat):
        start, cpu = time.perf_counter(), time.process_time()
        result = function()
        best = min(best, time.perf_counter() - start)
        busy = min(busy, time.process_time() - cpu)
    return best, busy, result


def resident_mib() -> float:
    """Memory of this process now, not at its peak."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_mib() -> float:
    """The most memory this process held: `ru_maxrss` would be that of the one that started it, if it held more."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def many(samples: int) -> Iterator[str]:
    """Memory while many small samples stream by, after a tenth, a half and all; then with the report in memory."""
    from inference.benchmarks.base import Benchmark, BenchmarkSample, TruthMask

    mask = np.zeros((64, 64), dtype=np.bool_)
    mask[10:40, 10:40] = True
    rle = encode_rle(np.roll(mask, 5, axis=1))
    marks: dict[int, float] = {}

    def read(images: bool) -> Iterator[BenchmarkSample]:
        for index in range(samples):
            if index in (samples // 10, samples // 2, samples - 1):
                marks[index] = resident_mib()
            yield BenchmarkSample(
                id=f"s{index:07d}",
                question=f"Which one of the {index} is it?",
                answer=f"number {index}",
                encoded=tuple,
                decode_masks=lambda: (TruthMask(mask.copy()),),
                tags={"domain": f"d{index % 5}", "entity_type": "person", "publisher": f"p{index % 300}"},
                image_keys=(f"{index // 2:016x}",),
            )

    def predictions() -> Iterator[Prediction]:
        for index in range(samples):
            yield Prediction(sample_id=f"s{index:07d}", segmenter="model", masks=(rle,))

    start = time.perf_counter()
    report = score(Benchmark("many", "", "0" * 64, samples, read), {"model": predictions()})
    took = time.perf_counter() - start
    places = sorted(marks)
    told = ", ".join(f"{marks[place]:.0f} MiB after {place}" for place in places)
    grown = (marks[places[-1]] - marks[places[0]]) / (places[-1] - places[0])
    yield f"{samples} samples of 64x64: {took:.1f} s, {samples / took:.0f} per second, intervals included"
    yield f"memory while streaming: {told}: {grown * 2**20:.0f} bytes per sample"
    yield f"with the report of {len(report.samples)} samples: {resident_mib():.0f} MiB, peak {peak_mib():.0f} MiB"
    with tempfile.TemporaryDirectory() as folder:
        write_report(report, Path(folder) / "report.json")
        size = (Path(folder) / "report.json").stat().st_size
        yield f"its report.json of {size / 2**20:.0f} MiB written: {resident_mib():.0f} MiB, peak {peak_mib():.0f} MiB"


def many_apart(samples: int) -> str:
    """`many` in a process of its own, so that nothing else is in its memory."""
    code = "import sys; from bench.score import many; print('\\n'.join(many(int(sys.argv[1]))))"
    done = subprocess.run([sys.executable, "-c", code, str(samples)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1548)
    parser.add_argument("--many", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args(arguments)
    say = sys.stdout.write
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch) / "NEST_261109_261115"
        predictions = make(folder, options.samples)
        say(f"scoring {options.samples} masks of {WIDTH}x{HEIGHT} from Parquet, best of three\n")
        decode, decode_cpu, _ = timed(lambda: only_decode(folder))
        ours, ours_cpu, value = timed(
            lambda: float(score(load(folder), {"model": predictions}).row("model").value("giou") or 0)
        )
        say("                                          clock, processor seconds\n")
        say(f"  only decoding the PNGs (2 threads)     {decode:7.2f} {decode_cpu:7.2f}\n")
        say(f"  load + score with intervals            {ours:7.2f} {ours_cpu:7.2f}\n")
        say(f"  that is {ours / decode:.2f} x decoding on the clock, {ours_cpu / decode_cpu:.2f} x in work (aim 1.5)\n")
        try:
            plain, plain_cpu, other = timed(lambda: lisa_loop(folder, predictions), repeat=1)
        except ImportError:
            say("  the torch loop is left out: torch is not installed\n")
        else:
            say(f"  plain torch loop as in LISA            {plain:7.2f} {plain_cpu:7.2f}\n")
            say(f"  that is {plain / ours:.1f} x ours on the clock, {plain_cpu / ours_cpu:.1f} x in work (aim 3)\n")
            say(f"  both agree: gIoU {value:.6f} and {other:.6f}\n")
    if options.many:
        say(many_apart(options.many))


if __name__ == "__main__":
    main()
