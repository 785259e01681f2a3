"""The ask stage as a whole: order, codes, stopping, public figures, and each fact once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from support.articles import article, picture

from engine.core.config import AskSection, LlmSection
from engine.core.errors import ConfigError, QuotaExhausted, TransientError
from engine.core.protocols import ImageHit, TextHit
from engine.core.schema import Article, Code, Question, Rejected, Stage, Writer
from engine.questions.ask import AskDeps, reduce, run, run_shards
from engine.questions.draft import Draft
from engine.questions.encyclopedia import Encyclopedia
from engine.questions.index import NewsIndex
from engine.questions.writers import make_writer, writer_key, writer_names

CONFIG = AskSection(writer="template")
OPEN = AskSection(writer="template", public_figures="off")
COLLINS = article(
    "Eileen Collins, a retired astronaut, opened the new hall of the museum on Tuesday. She stayed an hour.",
    "Eileen Collins at the museum.",
    publisher="The Herald",
)
OTHER = article("Astronaut Eileen Collins flew on four missions.", publisher="Daily Post")
PHONE = article(
    "The Lumo X2 phone went on sale for 700 dollars in twelve countries.", "The Lumo X2 phone beside a cup."
)


def deps(*window: Article, search: EncyclopediaSearch | None = None) -> AskDeps:
    return AskDeps(
        make_writer(CONFIG, chat=None),
        index=NewsIndex(window) if window else None,
        encyclopedia=Encyclopedia(search) if search else None,
    )


class EncyclopediaSearch:
    """A search that knows one page."""

    name = "test"

    def __init__(self, title: str, url: str, text: str = "Eileen Collins (born 1956) is a retired astronaut.") -> None:
        self.hit = TextHit(url, title, text)

    async def text(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[TextHit]:
        return [self.hit]

    async def images(
        self, query: str, *, limit: int, until: datetime | None = None, blocked: Sequence[str] = ()
    ) -> list[ImageHit]:
        return []


def codes(items: list[Question | Rejected]) -> list[str]:
    return [item.code.value if isinstance(item, Rejected) else item.answer for item in items]


# ---------------------------------------------------------------- run


async def test_a_public_figure_needs_two_publishers() -> None:
    assert codes(await run([COLLINS], CONFIG, deps=deps(COLLINS))) == ["private_person"]
    assert codes(await run([COLLINS], CONFIG, deps=deps(COLLINS, OTHER))) == ["Eileen Collins"]


async def test_the_same_sentence_on_two_sites_is_one_witness() -> None:
    copy = article(COLLINS.text, publisher="Copy Times")
    assert codes(await run([COLLINS], CONFIG, deps=deps(COLLINS, copy))) == ["private_person"]


@pytest.mark.parametrize(
    ("title", "url", "found"),
    [
        ("Eileen Collins", "https://en.wikipedia.org/wiki/Eileen_Collins", "Eileen Collins"),
        ("Eileen Collins (astronaut) - Wikipedia", "https://en.wikipedia.org/wiki/Eileen_Collins", "Eileen Collins"),
        ("Eileen Collins High School", "https://en.wikipedia.org/wiki/X", "private_person"),
        ("Eileen Collins", "https://wikipedia.org.evil.example/x", "private_person"),
    ],
)
async def test_or_an_encyclopedia(title: str, url: str, found: str) -> None:
    assert codes(await run([COLLINS], CONFIG, deps=deps(COLLINS, search=EncyclopediaSearch(title, url)))) == [found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Eileen Collins (1956 - 2031) flew four times.", "Eileen Collins"),
        ("Eileen Marie Collins is an American politician. She lives in Elmira.", "Eileen Collins"),
        (
            "Eileen Collins may refer to: Eileen Collins (astronaut), born 1956, or Eileen Collins (judge).",
            "private_person",
        ),
        ("Eileen Collins is a given name and surname. A judge has it too.", "private_person"),
        ("Eileen Collins is a small crater on the far side. It is 12 km wide.", "private_person"),
        ("Eileen Collins is the third album of a band from Elmira.", "private_person"),
        ("", "private_person"),
    ],
)
async def test_an_entry_is_about_one_person(text: str, found: str) -> None:
    search = EncyclopediaSearch("Eileen Collins", "https://en.wikipedia.org/wiki/Eileen_Collins", text)
    assert codes(await run([COLLINS], CONFIG, deps=deps(COLLINS, search=search))) == [found]


async def test_what_an_encyclopedia_cannot_say_ends_the_stage() -> None:
    """A service that stays away is not "nothing found"."""

    class Away(EncyclopediaSearch):
        async def text(self, query: str, *, limit: int, until: object = None, blocked: object = ()) -> list[TextHit]:
            raise TransientError("Wikimedia does not answer")

    with pytest.raises(TransientError, match="does not answer"):
        await run([COLLINS], CONFIG, deps=deps(COLLINS, search=Away("", "")))


async def test_a_private_person_is_counted_not_named() -> None:
    (lost,) = await run([COLLINS], CONFIG, deps=deps(COLLINS))
    assert isinstance(lost, Rejected)
    assert "Collins" not in lost.line().replace(COLLINS.url, "")


@pytest.mark.parametrize(
    "sentence",
    [
        "Eileen Collins, 15, opened the new hall of the museum on Tuesday.",
        "The 12-year-old swimmer Eileen Collins won. Eileen Collins opened the new hall of the museum.",
        "The schoolgirl Eileen Collins came. Eileen Collins opened the new hall of the museum.",
    ],
)
async def test_minors_are_refused(sentence: str) -> None:
    story = article(sentence, "Eileen Collins at the museum.")
    assert codes(await run([story], OPEN, deps=deps(story))) == ["minor"]


async def test_an_age_of_age_is_none() -> None:
    story = article("Eileen Collins, 70, opened the new hall of the museum on Tuesday.", "Eileen Collins, 70, in May.")
    assert codes(await run([story], OPEN, deps=deps(story))) == ["Eileen Collins"]


async def test_the_opt_out_list_is_consulted() -> None:
    config = AskSection(writer="template", public_figures="off", opt_out=("EILEEN  Collins",))
    assert codes(await run([COLLINS, PHONE], config, deps=deps())) == ["opted_out", "Lumo X2"]


async def test_a_question_has_what_later_stages_need() -> None:
    (found,) = await run([PHONE], CONFIG, deps=deps())
    assert isinstance(found, Question)
    assert (found.phrase, found.answer, found.images) == ("smartphone", "Lumo X2", (PHONE.images[0].sha256,))
    assert found.evidence in PHONE.text
    assert found.writer.name == "template"
    assert [check.name for check in found.checks][:2] == ["form", "generic"]
    assert all(check.passed for check in found.checks)


async def test_the_same_news_gives_the_same_bytes() -> None:
    first = await run([COLLINS, PHONE], OPEN, deps=deps())
    second = await run([COLLINS, PHONE], OPEN, deps=deps())
    assert [item.line() for item in first] == [item.line() for item in second]


class StoppingWriter:
    """Its third article finds the account empty; the others take a moment."""

    name = "stopping"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    def identity(self) -> Writer:
        return Writer(name=self.name, version="1")

    async def write(self, story: Article, config: AskSection) -> list[Draft | Rejected]:
        self.begun.append(story.title)
        if story.title == "2":
            await asyncio.sleep(0.01)
            raise QuotaExhausted("nothing left")
        await asyncio.sleep(0.05)
        self.ended.append(story.title)
        return []


async def test_a_stop_lets_what_is_under_way_finish_and_begins_nothing_new() -> None:
    writer = StoppingWriter()
    stories = [article("text", title=str(number)) for number in range(50)]
    with pytest.raises(QuotaExhausted):
        await run(stories, CONFIG, deps=AskDeps(writer, max_in_flight=4))
    assert writer.begun == ["0", "1", "2", "3"]
    assert writer.ended == ["0", "1", "3"]


class NamedWriter(StoppingWriter):
    """Says whose turn it was; a title with "slow" takes longer, one with "stop" ends everything."""

    async def write(self, story: Article, config: AskSection) -> list[Draft | Rejected]:
        self.begun.append(story.title)
        await asyncio.sleep(0.05 if "slow" in story.title else 0.001)
        if "stop" in story.title:
            raise QuotaExhausted("nothing left")
        return [Rejected(item=story.title, stage=Stage.ASK, code=Code.NO_FACT)]


async def test_shards_run_two_at_a_time_and_each_is_handed_over_whole() -> None:
    """While the slow article of one shard is waited for, the next shard goes on; nothing gets mixed up."""
    writer = NamedWriter()
    titles = [["a", "a slow"], ["b", "b"], ["c", "c"]]
    shards = [(number, [article("text", title=title) for title in part]) for number, part in enumerate(titles)]
    seen: dict[int, list[str]] = {}
    await run_shards(
        iter(shards),
        CONFIG,
        deps=AskDeps(writer, max_in_flight=4),
        done=lambda number, found: seen.update({number: [getattr(item, "item", "") for item in found]}),
    )
    assert list(seen) == [1, 2, 0]
    assert [seen[number] for number in range(3)] == titles


async def test_a_stop_in_one_shard_ends_all_and_keeps_what_was_finished() -> None:
    writer = NamedWriter()
    titles = [["a slow", "a slow"], ["b", "b stop"], ["c", "c"]]
    shards = [(number, [article("text", title=title) for title in part]) for number, part in enumerate(titles)]
    seen: list[int] = []
    with pytest.raises(QuotaExhausted):
        await run_shards(
            shards, CONFIG, deps=AskDeps(writer, max_in_flight=4), done=lambda number, found: seen.append(number)
        )
    assert seen == [0]
    assert "c" not in writer.begun


# ---------------------------------------------------------------- reduce


def question(
    text: str, answer: str, *, image: str = "a" * 64, story: str = "s1", evidence: str = "", number: int = 0
) -> Question:
    return Question(
        id=f"{text}|{answer}|{image[0]}|{story}|{number}",
        article_id=story,
        article_url=f"http://x.example/{story}",
        images=(image,),
        question=text,
        answer=answer,
        entity_type="person",
        kind="emerging",
        phrase="person",
        evidence=evidence or f"{answer} {text} {story}",
        writer=Writer(name="template", version="1"),
    )


def reduced(*questions: Question, most: int = 4, stories: dict[str, str] | None = None) -> list[tuple[str, str]]:
    found = reduce(questions, AskSection(max_questions_per_image=most), stories=stories)
    return [
        ("kept", item.answer) if isinstance(item, Question) else (item.code.value, item.item.split("|")[1])
        for item in found
    ]


def test_a_fact_is_asked_once_per_image() -> None:
    found = reduced(
        question("Who in the image won the city prize on Friday?", "A B"),
        question("Who in the image won the city prize on Friday night?", "A B"),
        question("Who in the image was born at sea in 1980?", "A B"),
    )
    assert sorted(found) == [("kept", "A B"), ("kept", "A B"), ("question_duplicate", "A B")]


def test_a_fact_is_asked_once_per_story() -> None:
    pair = (
        question("Who won the city prize?", "A B", image="a" * 64, evidence="A B won."),
        question("Who won the city prize?", "A B", image="b" * 64, story="s2", evidence="A B won."),
    )
    assert reduced(*pair) == [("kept", "A B"), ("kept", "A B")]
    assert sorted(reduced(*pair, stories={"s1": "one", "s2": "one"})) == [
        ("kept", "A B"),
        ("question_duplicate", "A B"),
    ]


def test_a_question_with_two_answers_is_none() -> None:
    found = reduced(question("Who won the city prize?", "A B"), question("Who won the city prize?", "C D"))
    assert sorted(found) == [("question_ambiguous", "A B"), ("question_ambiguous", "C D")]


def test_no_more_than_so_many_per_image_and_every_entity_before_a_second_of_one() -> None:
    found = reduced(
        question("Who was born at sea in 1980?", "A B"),
        question("Who won the city prize on Friday?", "A B"),
        question("Who sang in the opera of Oslo?", "C D"),
        most=2,
    )
    assert sorted(found) == [("kept", "A B"), ("kept", "C D"), ("limit", "A B")]


def test_the_order_of_work_does_not_show() -> None:
    items = [question(f"Who did thing number {n}?", f"N{n} M", image=f"{n % 3}" * 64) for n in range(9)]
    config = AskSection()
    assert [x.line() for x in reduce(items, config)] == [x.line() for x in reduce(items[::-1], config)]


# ---------------------------------------------------------------- writers


def test_an_unknown_writer_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'template'"):
        make_writer(AskSection(writer="templat"), chat=None)
    assert writer_names() == ["llm", "template"]


def test_the_llm_writer_needs_a_model() -> None:
    with pytest.raises(ConfigError, match="no chat model"):
        make_writer(AskSection(), chat=None)


def test_an_unknown_prompt_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'write_v1'"):
        writer_key(AskSection(prompt="write_v0"), LlmSection(model="m"))


def test_the_key_holds_what_decides_and_nothing_else() -> None:
    base = writer_key(AskSection(), LlmSection(model="m"))
    assert base != writer_key(AskSection(), LlmSection(model="n"))
    assert base == writer_key(AskSection(), LlmSection(model="m", base_url="http://x", max_in_flight=99, patience_s=1))
    template = writer_key(CONFIG, LlmSection(model="m"))
    assert template == writer_key(CONFIG, LlmSection(model="n"))
    assert "prompt" not in template
    assert Code.NO_FACT.value not in str(template)


async def test_a_shared_picture_is_asked_about_once_and_a_stock_picture_never() -> None:
    """Five stories with two pictures (case 19): one shows the mayor, the other is a stock picture."""
    cases = Path(__file__).parents[2] / "data" / "cases"
    records = json.loads((cases / "19-shared-image" / "records.json").read_text(encoding="utf-8"))
    texts = {
        "11": "Ilse Brandvik, the mayor of Northvale, opened the tidal bridge on Wednesday. She walked across it.",
        "22": "The central bank moved its rate on Wednesday. Governor Tomas Okafor said that prices had surprised him.",
    }
    articles = [
        article(f"{texts[record['image_sha']]} {record['article']}.", title=record["title"]).model_copy(
            update={"images": (picture(record["caption"], name=record["image_sha"]),)}
        )
        for record in records
    ]
    found = await run(articles, OPEN, deps=deps())
    assert codes(found) == ["Ilse Brandvik", "Ilse Brandvik", "no_entity", "no_entity", "no_entity"]
    done = reduce([item for item in found if isinstance(item, Question)], OPEN)
    assert codes(done) == ["Ilse Brandvik", "question_duplicate"]
