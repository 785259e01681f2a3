"""What segmenters with a checkpoint share: their entry in a record, and what to do when memory is short."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from engine.core.protocols import SegmentRequest, SegmentResult
from engine.core.schema import Failure, ModelRef
from segmentation import weights as weight_files
from segmentation.device import free_cache, is_out_of_memory


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder of weights under a segmenter's name, with the digest of what was in it when it was loaded."""

    name: str
    folder: Path
    sha256: str

    @classmethod
    def of(cls, name: str, folder: Path) -> Checkpoint:
        """The checkpoint of a folder; its weights are read once for their digest."""
        return cls(name, folder, weight_files.folder_digest(folder, weights_dir=folder.parent))

    def ref(self, how: str) -> ModelRef:
        """The entry in a record: `how` it is used (number type, thresholds ...) goes into the version."""
        return ModelRef(
            role="segmenter",
            name=f"{self.name}:{self.folder.name}",
            version=f"transformers {version('transformers')}, {how}",
            weights_sha256=self.sha256,
        )


def halving(
    requests: Sequence[SegmentRequest], answer: Callable[[Sequence[SegmentRequest]], list[SegmentResult]]
) -> list[SegmentResult]:
    """Answer the requests together; where memory does not suffice, in halves, and a single one that does not fit is the
    failure `out_of_memory`."""
    short = ""
    try:
        return answer(requests)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        short = str(error).splitlines()[0]
    # outside the handler, so that the traceback no longer holds what was computed
    free_cache()
    if len(requests) == 1:
        return [SegmentResult(None, Failure(kind="out_of_memory", detail=short))]
    middle = len(requests) // 2
    return [*halving(requests[:middle], answer), *halving(requests[middle:], answer)]
