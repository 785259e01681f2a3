"""What the ask stage needs: the writer, a recogniser of names, an encyclopedia's search, the model endpoint."""

from __future__ import annotations

import os
from collections.abc import Iterator

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.questions.writers import known_writer
from engine.web.search.registry import KEYS, require
from flows.doctor.endpoint import endpoint
from flows.doctor.finding import Finding, named
from flows.doctor.keys import model_access


def writer(config: Config) -> Iterator[Finding]:
    """Who writes the questions, and what that one needs."""
    if config.ask.writer == "template":
        yield Finding("warn", "questions come from the template writer", 'set [ask] writer = "llm" for a real snapshot')
        return
    if config.ask.writer != "llm":
        yield named(lambda: f"questions come from the plugin '{known_writer(config.ask.writer)}'")
        return
    if not config.llm.model:
        yield Finding("bad", "no model is named", "set [llm] model to a pinned id")
    elif config.llm.max_usd is not None and config.llm.model not in config.llm.prices:
        yield Finding(
            "bad", f"the price of {config.llm.model} is unknown", "add it to [llm.prices], a limit in money needs it"
        )
    if not os.environ.get("OPENAI_API_KEY"):
        yield Finding("bad", "OPENAI_API_KEY is not set", "export it; a local server takes any value")


def recogniser(config: Config) -> Iterator[Finding]:
    """Whether the recogniser of names can be loaded; only the template writer asks one."""
    told = config.ask.recogniser
    if not told or config.ask.writer != "template":
        return
    from engine.questions.recognise import make_recogniser

    try:
        found = make_recogniser(told)
    except ConfigError as error:
        yield Finding("bad", str(error), "install it, or leave [ask] recogniser empty")
        return
    assert found is not None  # it is only for no name
    yield Finding("good", f"names are read by {found.name} ({found.version})")


def encyclopedia(config: Config) -> Iterator[Finding]:
    """Whether the searches that are asked for encyclopedias' entries have their keys and addresses."""
    yield from search_keys(config, config.ask.encyclopedia, setting="[ask] encyclopedia")


def search_keys(config: Config, names: tuple[str, ...], *, setting: str) -> Iterator[Finding]:
    """A finding for each provider that lacks something, else one for all of them; none is asked."""
    secrets = {key: os.environ.get(key, "") for key in KEYS}
    lacking = False
    for name in names:
        try:
            require(name, config.rose, secrets)
        except ConfigError as error:
            lacking = True
            yield Finding("bad", f"{setting}: {error}", f"set it, or take '{name}' out of {setting}")
    if names and not lacking:
        yield Finding("good", f"{setting} is complete: {', '.join(names)}")


def model_endpoint(config: Config) -> Iterator[Finding]:
    """Whether it answers, knows the key and serves the model; only lists are read."""
    if config.ask.writer != "llm":
        return
    base = config.llm.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    for finding in endpoint(
        base, name="the model endpoint", mend="check [llm] base_url, OPENAI_BASE_URL and the network"
    ):
        yield finding
        if finding.state == "good":
            yield from model_access(config, base)
