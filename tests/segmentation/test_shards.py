from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.annotating import entity, question

from segmentation.shards import plan

PERSON = entity("Ada")


@given(
    images=st.lists(
        st.lists(st.sampled_from("abcdefghijk"), min_size=1, max_size=3, unique=True), min_size=0, max_size=25
    ),
    size=st.integers(1, 6),
    seed=st.integers(0, 100),
)
def test_a_plan_is_a_partition_that_keeps_images_together(images: list[list[str]], size: int, seed: int) -> None:
    questions = [question(PERSON, images=names, qid=f"q{index}") for index, names in enumerate(images)]
    shards = plan(questions, images_per_shard=size)
    assert sorted(item.id for shard in shards for item in shard) == sorted(item.id for item in questions)
    homes: dict[str, set[int]] = {}
    for index, shard in enumerate(shards):
        assert shard
        for item in shard:
            for image in item.images:
                homes.setdefault(image, set()).add(index)
    assert all(len(places) == 1 for places in homes.values())
    shuffled = questions[:]
    random.Random(seed).shuffle(shuffled)
    assert plan(shuffled, images_per_shard=size) == shards


def test_shards_hold_so_many_images() -> None:
    questions = [question(PERSON, images=[f"{index // 2:03d}"], qid=f"q{index:03d}") for index in range(20)]
    assert [len(shard) for shard in plan(questions, images_per_shard=4)] == [8, 8, 4]


def test_a_question_without_images_is_in_the_plan() -> None:
    assert [len(shard) for shard in plan([question(PERSON, images=[])], images_per_shard=3)] == [1]


def test_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one image"):
        plan([], images_per_shard=0)
