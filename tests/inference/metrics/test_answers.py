"""Answers: what counts as the name, the probe of what a model knows, and the judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.evaluation import benchmark_of, box_mask, predict

from engine.core.errors import QuotaExhausted
from engine.core.protocols import ChatReply, ChatRequest
from engine.core.schema import NoveltyLabel
from inference.benchmarks.base import Benchmark, TruthMask
from inference.metrics.answers import exact, normalise, token_f1
from inference.metrics.judge import judge
from inference.metrics.novelty import names_entity, probe, read_labels, with_labels, write_labels
from inference.metrics.score import score


@pytest.mark.parametrize(
    ("answer", "truths", "right"),
    [
        ("eileen collins", ("Eileen Collins",), True),
        ("The Élysée’s", ("Elysee",), True),
        ("Beyoncé", ("Beyonce",), True),
        ("Collins", ("Eileen Collins",), False),
        ("Collins", ("Eileen Collins", "Collins"), True),
        ("Pixel 12 Pro", ("Pixel 12",), False),
        ("", ("",), False),
        ("?!", ("!",), False),
        ("東京", ("東京",), True),
    ],
)
def test_exact(answer: str, truths: tuple[str, ...], right: bool) -> None:
    assert exact(answer, truths) is right


def test_token_f1_by_hand() -> None:
    assert token_f1("Collins", ("Eileen Collins",)) == pytest.approx(2 / 3)
    assert token_f1("Grace Hopper and Eileen Collins", ("Eileen Collins",)) == pytest.approx(4 / 7)
    assert token_f1("nobody", ("Eileen Collins",)) == 0.0
    assert token_f1("the Collins", ("Eileen Collins", "Collins")) == 1.0


@given(st.text(max_size=30))
@example("\U0001d56c")  # a letter that is decomposed into one that is folded into an article
def test_normalising_twice_is_once(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


def test_names_are_whole_words() -> None:
    assert names_entity("I think it is Ada Lovelace, in 1840.", ("Ada Lovelace",))
    assert not names_entity("Adalovelace Ada", ("Ada Lovelace",))
    assert not names_entity("I do not know.", ("No", ""))


class Scripted:
    """A chat model that answers by what is asked; it keeps what it was asked."""

    name = "scripted-1"

    def __init__(self, known: str, *, status: str = "ok", verdict: bool = True) -> None:
        self.known, self.status, self.verdict = known, status, verdict
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        if request.schema and self.status == "ok":
            return ChatReply(status="ok", data={"same": self.verdict})
        text = f"That is {self.known}." if request.images and "Name every" in request.user else "I do not know."
        return ChatReply(status="ok" if self.status == "ok" else "refused", text=text)


def two() -> Benchmark:
    mask = [TruthMask(box_mask(8, 8, (0, 0, 4, 4)))]
    return benchmark_of({"a": mask, "b": mask}, answers={"a": ("Ada Lovelace", "Countess"), "b": ("Charles Babbage",)})


async def test_probe_labels_with_evidence(tmp_path: Path) -> None:
    model = Scripted("Ada Lovelace")
    labels = [label async for label in probe(two(), model)]
    assert [label.label for label in labels] == ["emerging", "novel"]
    assert sum(one.matches for one in labels[0].evidence) == 1
    assert {one.with_image for one in labels[1].evidence} == {True, False}
    assert all(not request.images for request in model.asked if "There is no picture" in request.user)
    write_labels(tmp_path / "labels.jsonl", labels)
    assert read_labels(tmp_path / "labels.jsonl") == labels
    asked = len(model.asked)
    again = [label async for label in probe(two(), model, known=labels)]
    assert again == labels
    assert len(model.asked) == asked


async def test_refusals_are_no_evidence() -> None:
    labels = [label async for label in probe(two(), Scripted("Ada Lovelace", status="refused"))]
    assert {label.label for label in labels} == {"unknown"}
    assert labels[0].evidence == ()


def test_labels_become_the_split_of_the_report() -> None:
    labels = [
        NoveltyLabel(sample_id="a", model="m-1", label="novel"),
        NoveltyLabel(sample_id="b", model="m-1", label="emerging"),
    ]
    mask = box_mask(8, 8, (0, 0, 4, 4))
    report = score(with_labels(two(), labels), {"model": [predict("a", [mask]), predict("b", [~mask])]}, resamples=0)
    assert report.base_model == "m-1"
    assert report.row("model", split="novelty:m-1", part="novel").value("giou") == 1.0
    assert report.row("model", split="novelty:m-1", part="emerging").value("giou") == 0.0


async def test_judge_is_asked_only_what_no_alias_covers() -> None:
    mask = box_mask(8, 8, (0, 0, 4, 4))
    predictions = [predict("a", [mask], answer="countess"), predict("b", [mask], answer="Mr Babbage")]
    model = Scripted("", verdict=True)
    found = await judge(two(), predictions, model)
    assert (found.verdicts, found.asked, found.unjudged) == ({"a": True, "b": True}, 1, 0)
    assert len(model.asked) == 1
    assert "Mr Babbage" in model.asked[0].user
    report = score(two(), {"model": predictions}, judged={"model": found.verdicts}, resamples=0)
    assert report.row("model").value("accuracy") == 0.5
    assert report.row("model").value("judged") == 1.0


async def test_a_judge_that_gives_no_verdict_leaves_the_answer_unjudged_and_counted() -> None:
    mask = box_mask(8, 8, (0, 0, 4, 4))
    predictions = [predict("a", [mask], answer="nobody"), predict("b", [mask], answer="Mr Babbage")]
    found = await judge(two(), predictions, Scripted("", status="refused"))
    assert (found.verdicts, found.asked, found.unjudged) == ({}, 2, 2)


async def test_a_judge_without_quota_ends_the_work_with_its_own_error() -> None:
    class Empty(Scripted):
        async def complete(self, request: ChatRequest) -> ChatReply:
            raise QuotaExhausted("no quota left")

    mask = box_mask(8, 8, (0, 0, 4, 4))
    with pytest.raises(QuotaExhausted):
        await judge(two(), [predict(name, [mask], answer="nobody") for name in "ab"], Empty(""))
    with pytest.raises(QuotaExhausted):
        [label async for label in probe(two(), Empty(""))]
