"""TPE: question, answer and background become the segmenter's prompt, within its length limit.

The paper gives the inputs and not the template; this one states the answer as a fact before the question's own words,
because segmenters of the LISA family follow the last noun they are told. Detectors get "noun name" instead, and parts
that know no names the noun alone. Without TPE the prompt is the fixed "please segment <answer>" of the paper's
retrieval baselines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.schema import TraceStep
from inference.segmenters.base import Wording, shorten
from inference.segmenters.phrases import asks_for_person, noun_of, predicate_of

VERSION = "tpe-1"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text for the segmenter and its trace step."""

    text: str
    trace: TraceStep


def enhance(
    question: str,
    answer: str | None,
    background: Sequence[str] = (),
    *,
    wording: Wording,
    prompt_chars: int,
) -> Prompt:
    """The prompt that tells the segmenter the answer; without an answer it is the question as it is.

    Background is added sentence by sentence as long as it fits: the answer and the question are never cut for it.
    """
    limit = min(prompt_chars, wording.max_chars)
    used: list[str] = []
    if answer is None:
        text = wording.ask(question)
    elif wording.form == "phrase":
        text = wording.show(f"{noun_of(question)} {answer}" if wording.names else noun_of(question))
    else:
        link = "who" if asks_for_person(question) else "that"
        told = f"{answer} is the {noun_of(question)} {link} {predicate_of(question)}."
        core = f"{told} {question}" if len(told) + len(question) < limit else f"{answer}. {question}"
        for sentence in background:
            longer = f"{' '.join([*used, sentence])} {core}"
            if len(longer) <= limit:
                used.append(sentence)
        text = wording.ask(shorten(" ".join([*used, core]), limit))
    step = TraceStep(
        module="tpe",
        input=question,
        output=text,
        values={"version": VERSION, "answer": answer or "", "background": " ".join(used)},
    )
    return Prompt(text=text, trace=step)


def plain(question: str, answer: str | None, *, wording: Wording) -> Prompt:
    """The prompt without TPE: "please segment <answer>" in the segmenter's wording, or the question."""
    if answer is None:
        text = wording.ask(question)
    elif wording.form == "phrase":
        text = wording.show(answer if wording.names else noun_of(question))
    else:
        text = wording.show(answer)
    step = TraceStep(module="tpe", input=question, output=text, values={"version": "off", "answer": answer or ""})
    return Prompt(text=text, trace=step)
