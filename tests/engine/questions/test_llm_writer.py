"""The writer with a model: what it sends, what it makes of replies, and whole runs against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.articles import article
from support.llm_server import LlmServer, Scripted, completion

from engine.core.config import AskSection, LlmSection
from engine.core.errors import ConfigError
from engine.core.schema import Article, Question, Rejected
from engine.llm.client import OpenAIChat
from engine.llm.ledger import Ledger
from engine.llm.plan import PlanningChat, estimate
from engine.questions.ask import reduce, run
from engine.questions.deps import blind_llm, make_deps, needs_chat
from engine.questions.planning import plan

TEXT = (
    "Mayor Ilse Brandvik cut the ribbon beside the engineer Tomas Okafor, who had led the works since 2019. "
    "The Lumo X2 went on sale in twelve countries on Monday."
)
STORY = article(
    TEXT, "Mayor Ilse Brandvik, left, and Tomas Okafor at the bridge.", "The Lumo X2 phone, right, on a table."
)
CONFIG = AskSection(public_figures="off")


def settings(server: LlmServer, **more: Any) -> LlmSection:
    return LlmSection(base_url=server.url, model="test-model", backoff_s=0.3, **more)


class Pictures:
    """Blobs in memory: a picture's bytes are its digest."""

    def put(self, data: bytes, ext: str) -> str:
        raise NotImplementedError

    def get(self, sha256: str, ext: str = "") -> bytes:
        return b"\xff\xd8" + sha256.encode()


async def ask(
    server: LlmServer, home: Path, story: Article = STORY, *, config: AskSection = CONFIG, **more: Any
) -> list[Question | Rejected]:
    llm = settings(server, **more)
    blind_config = blind_llm(config, llm)
    async with OpenAIChat(llm, api_key="test-key", cache=home) as chat:
        blind = OpenAIChat(blind_config, api_key="test-key", cache=home) if blind_config else None
        deps = make_deps(config, llm, chat=chat, blind=blind, blobs=Pictures(), articles=[story])
        try:
            return await run([story], config, deps=deps)
        finally:
            if blind is not None:
                await blind.endpoint.close()


def pair(**change: Any) -> dict[str, Any]:
    return {
        "image": 1,
        "entity": "Ilse Brandvik",
        "entity_type": "person",
        "phrase": "woman",
        "position": "left",
        "question": "Which person in the image cut the ribbon at the bridge?",
        "answer": "Ilse Brandvik",
        "evidence": "Mayor Ilse Brandvik cut the ribbon beside the engineer Tomas Okafor",
        "kind": "emerging",
        "aliases": ["Mayor Brandvik", "the iron mayor"],
        **change,
    }


def pairs(*items: dict[str, Any]) -> Callable[[Any], Scripted]:
    return lambda body: completion(json.dumps({"pairs": list(items)}))


async def test_a_whole_article_through_a_server_that_writes(tmp_path: Path) -> None:
    with LlmServer() as server:
        found = await ask(server, tmp_path)
        again = await ask(server, tmp_path)
    assert {item.answer for item in found if isinstance(item, Question)} == {"Ilse Brandvik", "Tomas Okafor", "Lumo X2"}
    assert [item.line() for item in again] == [item.line() for item in found]
    assert server.answered == 1
    first = next(item for item in found if isinstance(item, Question))
    assert first.writer.model == "test-model"
    assert first.writer.prompt.startswith("write_v1@")


async def test_captions_title_and_text_are_sent_in_one_request(tmp_path: Path) -> None:
    with LlmServer() as server:
        await ask(server, tmp_path)
    (body,) = server.bodies
    user = body["messages"][1]["content"]
    assert "Picture 1: Mayor Ilse Brandvik" in user
    assert "Picture 2: The Lumo X2 phone" in user
    assert "at most 2 questions" in body["messages"][0]["content"]
    assert TEXT in user


async def test_what_the_caption_says_wins_over_the_models_claims(tmp_path: Path) -> None:
    wrong = pair(position="far right", phrase="woman in blue")
    invented = pair(
        image=2,
        entity_type="product",
        phrase="gadget",
        answer="Lumo X2",
        position="top",
        question="Which gadget in the image went on sale in twelve countries?",
        evidence="The Lumo X2 went on sale in twelve countries on Monday.",
    )
    with LlmServer(reply=pairs(wrong, invented)) as server:
        found = [item for item in await ask(server, tmp_path) if isinstance(item, Question)]
    assert [(item.phrase, item.position) for item in found] == [("person", "left"), ("smartphone", "right")]
    assert found[0].aliases == ("Brandvik", "Mayor Brandvik") or "the iron mayor" not in found[0].aliases


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"image": 7}, "reply_invalid"),
        ({"question": "Which person in the image is Brandvik?"}, "answer_in_question"),
        ({"evidence": "Mayor Ilse Brandvik cut the ribbon beside nobody at all"}, "evidence_not_in_source"),
        ({"answer": "Anna Holm"}, "answer_not_in_source"),
        ({"image": 2}, "entity_not_pictured"),
    ],
)
async def test_a_bad_pair_is_lost_by_its_code(tmp_path: Path, change: dict[str, Any], code: str) -> None:
    with LlmServer(reply=pairs(pair(**change))) as server:
        (found,) = await ask(server, tmp_path)
    assert isinstance(found, Rejected)
    assert found.code.value == code


async def test_a_surname_alone_becomes_the_full_name(tmp_path: Path) -> None:
    with LlmServer(reply=pairs(pair(answer="BRANDVIK"))) as server:
        (found,) = await ask(server, tmp_path)
    assert isinstance(found, Question)
    assert found.answer == "Ilse Brandvik"


async def test_too_long_is_cut_and_asked_again(tmp_path: Path) -> None:
    """The first sentences and those about the pictured stay; the last try's text is an eighth."""
    filler = " ".join(f"The harbour had calm weather on day {n}." for n in range(400))
    story = article(f"{filler} {TEXT}", *(image.caption for image in STORY.images))
    told = Scripted(400, {"error": {"code": "context_length_exceeded", "message": "maximum context length"}})

    def reply(body: Any) -> Scripted:
        return told if len(body["messages"][1]["content"]) > 3_000 else pairs(pair())(body)

    with LlmServer(reply=reply) as server:
        found = await ask(server, tmp_path, story)
    sizes = [len(body["messages"][1]["content"]) for body in server.bodies]
    assert sizes == sorted(sizes, reverse=True)
    assert TEXT.split(". ")[0] in server.bodies[-1]["messages"][1]["content"]
    assert [item.answer for item in found if isinstance(item, Question)] == ["Ilse Brandvik"]


async def test_pictures_go_to_a_model_that_sees(tmp_path: Path) -> None:
    with LlmServer(reply=pairs(pair())) as server:
        await ask(server, tmp_path, sees_images=True)
    kinds = [part["type"] for part in server.bodies[0]["messages"][1]["content"]]
    assert kinds == ["text", "image_url", "image_url"]


# ---------------------------------------------------------------- blind model and lettering


def by_purpose(answers: Mapping[str, str]) -> Callable[[Any], Scripted]:
    """Replies by the schema's name: questions, answer, texts."""

    def reply(body: Any) -> Scripted:
        return completion(answers[body["response_format"]["json_schema"]["name"]])

    return reply


@pytest.mark.parametrize(
    ("answer", "reject", "outcome"),
    [
        ({"answer": "Mayor Brandvik", "known": True}, True, "known_blind"),
        ({"answer": "Mayor Brandvik", "known": True}, False, "kept"),
        ({"answer": "Anna Holm", "known": True}, True, "kept"),
        ({"answer": "", "known": False}, True, "kept"),
    ],
)
async def test_what_a_model_knows_without_the_news(tmp_path: Path, answer: Any, reject: bool, outcome: str) -> None:
    config = AskSection(public_figures="off", blind_model="old-model", reject_known=reject)
    told = {"questions": json.dumps({"pairs": [pair()]}), "answer": json.dumps(answer)}
    with LlmServer(reply=by_purpose(told)) as server:
        (found,) = await ask(server, tmp_path, config=config)
        await ask(server, tmp_path, config=config)
        assert server.answered == 2
    assert server.bodies[1]["model"] == "old-model"
    assert TEXT not in json.dumps(server.bodies[1])
    if outcome != "kept":
        assert isinstance(found, Rejected)
        assert found.code.value == outcome
        return
    assert isinstance(found, Question)
    (blind,) = found.blind
    assert (blind.model, blind.with_image) == ("old-model", False)
    assert blind.matches == (answer["answer"] == "Mayor Brandvik")


async def test_a_blind_model_that_sees_is_asked_twice(tmp_path: Path) -> None:
    config = AskSection(public_figures="off", blind_model="old-model", blind_sees_images=True)
    told = {"questions": json.dumps({"pairs": [pair()]}), "answer": '{"answer": "", "known": false}'}
    with LlmServer(reply=by_purpose(told)) as server:
        (found,) = await ask(server, tmp_path, config=config)
    assert isinstance(found, Question)
    assert [item.with_image for item in found.blind] == [False, True]


async def test_a_refusing_blind_model_gives_no_answer(tmp_path: Path) -> None:
    def reply(body: Any) -> Scripted:
        if body["model"] == "old-model":
            return completion(None, refusal="I do not name people.")
        return pairs(pair())(body)

    config = AskSection(public_figures="off", blind_model="old-model")
    with LlmServer(reply=reply) as server:
        (found,) = await ask(server, tmp_path, config=config)
    assert isinstance(found, Question)
    assert found.blind == ()
    assert next(check.detail for check in found.checks if check.name == "blind") == "without the picture: refused"


@pytest.mark.parametrize(("texts", "outcome"), [(["BRANDVIK", "7"], "answer_readable_in_image"), (["Northvale"], "")])
async def test_names_that_stand_in_the_picture(tmp_path: Path, texts: list[str], outcome: str) -> None:
    config = AskSection(public_figures="off", read_images=True)
    told = {"questions": json.dumps({"pairs": [pair()]}), "texts": json.dumps({"texts": texts})}
    with LlmServer(reply=by_purpose(told)) as server:
        (found,) = await ask(server, tmp_path, config=config, sees_images=True)
    assert (found.code.value if isinstance(found, Rejected) else "") == outcome


def test_what_the_config_asks_for_must_be_there() -> None:
    llm = LlmSection(model="m")
    with pytest.raises(ConfigError, match="read_images needs"):
        make_deps(AskSection(writer="template", read_images=True), llm, chat=None)
    with pytest.raises(ConfigError, match="old-model"):
        make_deps(AskSection(writer="template", blind_model="old-model"), llm, chat=None)
    assert not needs_chat(AskSection(writer="template"))
    assert blind_llm(AskSection(), llm) is None


# ---------------------------------------------------------------- plans


async def test_a_plan_spends_nothing_and_tells_what_a_run_will_ask(tmp_path: Path) -> None:
    stories = [article(TEXT, STORY.images[0].caption, title=f"Day {n}") for n in range(5)]
    with LlmServer() as server:
        llm = settings(server, prices={"test-model": (1.0, 4.0)})
        planner = PlanningChat(llm, cache=tmp_path / "cache")
        lacking = await plan(stories, CONFIG, deps=make_deps(CONFIG, llm, chat=planner, articles=stories))
        told = estimate(planner, prices=llm.prices)
        assert (lacking, told.requests, server.begun) == (5, 5, 0)
        ledger = Ledger.of(llm)
        async with OpenAIChat(llm, api_key="test-key", cache=tmp_path / "cache", ledger=ledger) as chat:
            found = await run(stories, CONFIG, deps=make_deps(CONFIG, llm, chat=chat, articles=stories))
        assert server.answered == 5
        assert told.usd is not None
        assert told.usd_most is not None
        assert ledger.spent().usd <= told.usd_most
        assert told.tokens_in == pytest.approx(ledger.spent().tokens_in, rel=0.5)
        assert await plan(stories, CONFIG, deps=make_deps(CONFIG, llm, chat=planner, articles=stories)) == 0
    assert len(reduce([item for item in found if isinstance(item, Question)], CONFIG)) == 10
