"""A scored run as a folder that others can check: `report.json` and the predictions it was made from.

    report.json
    predictions/<segmenter>.parquet      the columns of `inference.metrics.submission`

The folder can be pushed beside the data; `cite.replay` scores it again and must find the same digits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from engine.core.errors import ConfigError, TerminalError
from engine.core.schema import Prediction, ScoreReport, why
from engine.core.store.files import write_atomic_parts
from inference.metrics.submission import read_predictions, write_predictions


@dataclass(frozen=True, slots=True)
class Published:
    """A published run, predictions by segmenter; each iteration reads its file."""

    report: ScoreReport
    files: Mapping[str, Path]

    def predictions(self) -> dict[str, Iterator[Prediction]]:
        """Streams of predictions for `score`, fresh on each call."""
        return {name: read_predictions(path, segmenter=name) for name, path in self.files.items()}


def publish(report: ScoreReport, predictions: Mapping[str, Iterable[Prediction]], folder: Path) -> None:
    """Write the folder."""
    (folder / "predictions").mkdir(parents=True, exist_ok=True)
    for name, found in predictions.items():
        write_predictions(_file(folder, name), found)
    write_report(report, folder / "report.json")


def write_report(report: ScoreReport, path: Path) -> None:
    """The report as its JSON file, written as it is made."""
    write_atomic_parts(path, (piece.encode() for piece in chain(report.pieces(), ("\n",))))


def read_report(path: Path) -> ScoreReport:
    """A report from its JSON file. Raises `ConfigError` where there is none, `TerminalError` for one that does not
    fit."""
    try:
        return ScoreReport.read_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"there is no report at {path}: {error.strerror}") from error
    except ValueError as error:
        raise TerminalError(f"{path} is not a score report: {why(error)}") from error


def read_published(folder: Path) -> Published:
    """A published folder. Raises `ConfigError` naming the predictions that are not there."""
    report = read_report(folder / "report.json")
    files = {info.name: _file(folder, info.name) for info in report.segmenters}
    if missing := [name for name, path in files.items() if not path.is_file()]:
        raise ConfigError(f"{folder} has no predictions of {', '.join(missing)}")
    return Published(report, files)


def _file(folder: Path, name: str) -> Path:
    return folder / "predictions" / f"{name.replace(':', '+').replace('/', '_')}.parquet"
