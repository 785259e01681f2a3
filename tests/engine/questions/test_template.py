"""The template writer: the article's own words as correct English questions."""

from __future__ import annotations

import pytest
from support.articles import article

from engine.core.config import AskSection
from engine.core.schema import Code, Rejected
from engine.questions.draft import Draft
from engine.questions.text import has_phrase, level
from engine.questions.writers.template import TemplateWriter, write_from_text

CONFIG = AskSection(writer="template")
CASES = [
    (
        "Eileen Collins commanded the STS-93 mission in July 1999.",
        "Eileen Collins at the museum.",
        "Which person in the image commanded the STS-93 mission in July 1999?",
    ),
    (
        "Rear Admiral Grace Hopper, who developed one of the first compilers, is honoured in the hall.",
        "Grace Hopper in 1984.",
        "Which person in the image developed one of the first compilers?",
    ),
    (
        "Mayor Ilse Brandvik cut the ribbon beside the engineer Tomas Okafor, who had led the works since 2019.",
        "Engineer Tomas Okafor, left, at the bridge.",
        "Which person in the image had led the works since 2019?",
    ),
    (
        "On Monday, the Lumo X2 phone went on sale for 700 dollars in twelve countries.",
        "The Lumo X2 phone beside a cup.",
        "Which smartphone in the image went on sale for 700 dollars in twelve countries?",
    ),
    (
        "The Halo Mini, a speaker no larger than a lemon, plays for nine hours on one charge.",
        "The Halo Mini speaker.",
        "Which speaker in the image plays for nine hours on one charge?",
    ),
    (
        "Grace Hopper was born in New York. Hopper joined the navy reserve in 1943 and worked on the Mark I computer.",
        "Grace Hopper, left.",
        "Which person in the image joined the navy reserve in 1943 and worked on the Mark I computer?",
    ),
    (
        "Tomas Okafor, 41, won the Northvale prize for engineers on Friday, according to the jury.",
        "Tomas Okafor with his prize.",
        "Which person in the image won the Northvale prize for engineers on Friday?",
    ),
]


@pytest.mark.parametrize(("text", "caption", "question"), CASES, ids=[case[1] for case in CASES])
def test_question(text: str, caption: str, question: str) -> None:
    found = write_from_text(article(text, caption), CONFIG)
    assert [item.question for item in found if isinstance(item, Draft)] == [question]
    draft = found[0]
    assert isinstance(draft, Draft)
    assert level(draft.evidence) in level(text)
    assert not any(has_phrase(draft.question, part) for part in draft.answer.split())


@pytest.mark.parametrize(
    "text",
    [
        '"I am glad," Grace Hopper said. "We won the prize of the city."',
        "Eileen Collins and Grace Hopper met the mayor of Northvale on Tuesday.",
        "The mayor thanked Grace Hopper for her work on compilers.",
        "Hopperville honoured the navy with a parade on Tuesday.",
        "Grace Hopper based in Arlington.",
        "Friends of Grace Hopper opened a museum in Northvale.",
    ],
)
def test_no_question_from_a_sentence_that_does_not_carry_one(text: str) -> None:
    found = write_from_text(article(text, "Grace Hopper at work."), CONFIG)
    assert [item.code for item in found if isinstance(item, Rejected)] == [Code.NO_FACT]


def test_losses_have_their_picture_and_code() -> None:
    story = article("Nothing happened in Northvale.", "A crowd in the street.", "")
    found = write_from_text(story, CONFIG)
    assert [(item.item, item.code) for item in found if isinstance(item, Rejected)] == [
        (image.sha256, Code.NO_ENTITY) for image in story.images
    ]


def test_only_the_wanted_types() -> None:
    story = article(
        "Grace Hopper joined the navy in 1943. The Kestrel laptop weighs 900 grams.",
        "Grace Hopper with the Kestrel laptop.",
    )
    only = AskSection(writer="template", entity_types=("product",))
    found = [item for item in write_from_text(story, only) if isinstance(item, Draft)]
    assert [item.answer for item in found] == ["Kestrel"]
    assert [entity.name for entity in found[0].entities] == ["Grace Hopper", "Kestrel"]


async def test_the_row_says_who_wrote_it() -> None:
    writer = TemplateWriter()
    assert writer.identity().name == "template"
    assert await writer.write(article("Grace Hopper joined the navy in 1943.", "Grace Hopper."), CONFIG)


def test_a_launch_is_novel_a_person_emerging() -> None:
    story = article(
        "The firm unveiled its phone on Monday. The Lumo X2 was unveiled in Oslo on Monday by its maker. "
        "Grace Hopper joined the navy in 1943.",
        "Grace Hopper with the Lumo X2 phone.",
    )
    kinds = {item.answer: item.kind for item in write_from_text(story, CONFIG) if isinstance(item, Draft)}
    assert kinds == {"Grace Hopper": "emerging", "Lumo X2": "novel"}
