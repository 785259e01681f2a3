"""Two workers share a week's shards, one is killed: nothing is lost, nothing is done twice, the bytes are the same.

The size at which this was measured, 2,000 images, is `python -m bench.annotate_shards`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.annotate_shards import digests, disturbed, prepare
from engine.core.schema import Annotation
from flows.stages import annotate


@pytest.mark.slow
def test_a_killed_worker_loses_no_shard_and_none_is_done_twice(tmp_path: Path) -> None:
    first = prepare(tmp_path / "disturbed", images=24, shard_images=3)
    finished = disturbed(first.home.root, shard_images=3, kills=1, seed=3, within_s=0.3)
    assert len(finished) == len(set(finished))
    place = annotate.place(first)
    assert place is not None
    rows = [item.question_id for item in place.read(Annotation)] + [item.item for item in place.rejected()]
    assert sorted(rows) == [f"q{index:06d}" for index in range(24)]
    assert len(rows) - len(place.rejected()) >= 12  # masks were made, not only refusals
    second = prepare(tmp_path / "quiet", images=24, shard_images=3)
    annotate.do(second)
    assert digests(first) == digests(second)
    assert not list(place.path.rglob(".tmp-*"))
