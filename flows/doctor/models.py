"""What masks and scores need: the annotator's models and weights, segmenters, and what these search with."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import partial

from engine.core.config import Config
from engine.core.errors import NestError
from engine.core.store import Home
from engine.web.search.registry import known_provider
from flows.doctor.asking import search_keys
from flows.doctor.finding import Finding, named
from flows.run import weights_of


def annotator(config: Config) -> Iterator[Finding]:
    """Whether detector, mask model and all their weights are here."""
    from segmentation.registry import annotator_key, lacking_weights

    names = f"{config.annotate.detector} + {config.annotate.mask_model}"
    if "portable" in (config.annotate.detector, config.annotate.mask_model):
        yield Finding(
            "warn", f"masks come from the portable annotator ({names})", "use groundingdino and sam for a real snapshot"
        )
    elif importlib.util.find_spec("torch") is None:
        yield Finding("bad", f"{names} need the [gpu] extra", "pip install 'nest-data-engine[gpu]'")
        return
    weights = weights_of(config, Home(config.home))
    references = config.resolve(config.annotate.references) if config.annotate.references else None
    if lacking := lacking_weights(config.annotate, weights_dir=weights):
        for words in lacking:
            yield Finding("bad", f"[annotate] {words}")
        return
    try:
        annotator_key(config.annotate, weights_dir=weights, references=references, marks_model=config.llm.model)
    except NestError as error:
        yield Finding("bad", str(error), "")
    else:
        yield Finding("good", f"annotator {names} is complete")


def segmenters(config: Config) -> Iterator[Finding]:
    """Whether the configured names are segmenters."""
    from inference.segmenters.registry import check

    for name in config.score.segmenters:
        try:
            check(name)
        except NestError as error:
            yield Finding("bad", str(error), "'nest segmenters' lists them")


def searches(config: Config) -> Iterator[Finding]:
    """Whether the searches of `[rose] search` are known, and have their keys where a segmenter is to use them."""
    from flows.evaluating import retrieves

    if config.score.offline or not any(retrieves(name) for name in config.score.segmenters):
        for name in config.rose.search:
            found = named(partial(known_provider, name))
            if found.state == "bad":
                yield found
        return
    yield from search_keys(config, config.rose.search, setting="[rose] search")


def judge(config: Config) -> Iterator[Finding]:
    """Whether the model that judges answers has a key, and a price where a limit in money needs it."""
    model, llm = config.score.judge_model, config.llm
    if not model or config.score.offline:
        return
    if not os.environ.get("OPENAI_API_KEY"):
        yield Finding("bad", f"OPENAI_API_KEY is not set: [score] judge_model '{model}' needs it", "export it")
    if llm.max_usd is not None and model not in llm.prices:
        yield Finding("bad", f"the price of {model} is unknown", "add it to [llm.prices], a limit in money needs it")
