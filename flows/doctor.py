"""`nest doctor`: what would stop a run, found before it starts; each finding with its mend.

Keys are looked at, never printed. Nothing is downloaded and nothing is spent.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from engine.core.config import Config, load_config
from engine.core.errors import ConfigError, NestError
from engine.core.store import Home
from engine.questions.writers import known_writer
from engine.web.search.registry import known_provider
from flows.plan import states
from flows.run import Run, weights_of

FREE_BYTES = 5_000_000_000
CLOCK_SKEW_S = 120.0


@dataclass(frozen=True, slots=True)
class Finding:
    """`state` is good, warn or bad; `mend` is what to do, empty when nothing is."""

    state: Literal["good", "warn", "bad"]
    what: str
    mend: str = ""


def examine(path: Path | None) -> list[Finding]:
    """All findings, in the order a run would meet them."""
    findings = list(_packages())
    try:
        config = load_config(path)
    except ConfigError as error:
        return [*findings, Finding("bad", str(error), "correct the file, 'nest init' writes a fresh one")]
    findings.append(Finding("good", "configuration is valid"))
    from flows.doctor_keys import expiries

    parts = (
        _home,
        _sources,
        _writer,
        _searches,
        _model_endpoint,
        _task_runner,
        _deployments,
        _annotator,
        _segmenters,
        _hub,
        expiries,
        _prefect,
    )
    for part in parts:
        findings += part(config)
    return findings


def refuse_unfit(run: Run) -> None:
    """What can be seen at once, for the stages that are still to be done: no network, nothing spent. Raises
    `ConfigError` with every finding and its mend, so that nobody waits for the fifth stage to hear of a missing key."""
    checks: dict[str, Callable[[Config], Iterator[Finding]]] = {
        "collect": _sources,
        "ask": _writer,
        "push": _hub,
    }
    # what other workers do needs nothing of this machine
    if not run.config.flows.annotate_deployment:
        checks["annotate"] = _annotator
    if not run.config.flows.score_deployment:
        checks["score"] = _segmenters
    findings = [*_packages(), *_home(run.config), *_task_runner(run.config), *_deployments(run.config)]
    for state in states(run):
        if state.wanted and not state.finished and state.stage in checks:
            findings += checks[state.stage](run.config)
    bad = [f"{one.what}" + (f" ({one.mend})" if one.mend else "") for one in findings if one.state == "bad"]
    if bad:
        raise ConfigError("; ".join(bad))


def wrong_sources(config: Config) -> Iterator[str]:
    """Sources whose type is not known or whose address cannot be one, in words; nothing is fetched."""
    from engine.news.sources import ready

    for row in config.source:
        try:
            ready(row)
        except ConfigError as error:
            yield str(error) if str(error).startswith("source ") else f"source '{row.name}': {error}"
            continue
        if row.type == "archive":
            if "://" not in row.url and not config.resolve(Path(row.url)).is_file():
                yield f"source '{row.name}': there is no file '{row.url}'"
        elif row.type in ("feed", "sitemap") or row.url:
            parts = _parts(row.url)
            if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
                yield f"source '{row.name}': '{row.url}' is not an address: write https://..."


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port > 0 else None
    except ValueError:
        return None


def _searches(config: Config) -> Iterator[Finding]:
    for name in config.rose.search:
        if (found := _named(partial(known_provider, name))).state == "bad":
            yield found


def _named(make: Callable[[], str]) -> Finding:
    """A good finding of those words, or a bad one where making them says that a name is unknown."""
    try:
        return Finding("good", make())
    except ConfigError as error:
        return Finding("bad", str(error), "correct the name in nest.toml")


def _packages() -> Iterator[Finding]:
    root = Path(__file__).resolve().parent.parent
    for name in ("flows", "engine", "segmentation", "inference"):
        spec = importlib.util.find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None or origin.parent.parent != root:
            yield Finding(
                "bad", f"the module '{name}' comes from {origin}", f"remove the package that shadows {root / name}"
            )
    yield Finding("good", f"Python {sys.version.split()[0]}, packages are our own")


def _home(config: Config) -> Iterator[Finding]:
    home = config.home
    there = home
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK):
        yield Finding("bad", f"{home} cannot be written", "set home in nest.toml or NEST_HOME to a place of yours")
        return
    free = shutil.disk_usage(there).free
    state: Literal["good", "warn", "bad"] = "good" if free >= FREE_BYTES else "warn"
    if not free:
        state = "bad"
    mend = "" if state == "good" else "a week with images takes some gigabytes: free some space, 'nest gc' helps"
    yield Finding(state, f"home {home}, {free / 1e9:.0f} GB free", mend)


def _sources(config: Config) -> Iterator[Finding]:
    active = [source for source in config.source if not source.paused]
    if not active:
        yield Finding("bad", "no source is configured", "add [[source]] rows, 'nest init' writes some")
    else:
        yield Finding("good", f"{len(active)} sources; 'nest sources check' tries them")
    for words in wrong_sources(config):
        yield Finding("bad", words, "correct its row in nest.toml")
    if "set [collect] user_agent" in config.collect.user_agent or "put your contact" in config.collect.user_agent:
        yield Finding("warn", "the agent string names no contact", "put your address into [collect] user_agent")


def _writer(config: Config) -> Iterator[Finding]:
    if config.ask.writer == "template":
        yield Finding("warn", "questions come from the template writer", 'set [ask] writer = "llm" for a real snapshot')
        return
    if config.ask.writer != "llm":
        yield _named(lambda: f"questions come from the plugin '{known_writer(config.ask.writer)}'")
        return
    if not config.llm.model:
        yield Finding("bad", "no model is named", "set [llm] model to a pinned id")
    elif config.llm.max_usd is not None and config.llm.model not in config.llm.prices:
        yield Finding(
            "bad", f"the price of {config.llm.model} is unknown", "add it to [llm.prices], a limit in money needs it"
        )
    if not os.environ.get("OPENAI_API_KEY"):
        yield Finding("bad", "OPENAI_API_KEY is not set", "export it; a local server takes any value")


def _model_endpoint(config: Config) -> Iterator[Finding]:
    if config.ask.writer != "llm":
        return
    base = config.llm.base_url or os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
    from flows.doctor_keys import model_access

    for finding in _endpoint(base, "the model endpoint", "check [llm] base_url, OPENAI_BASE_URL and the network"):
        yield finding
        if finding.state == "good":
            yield from model_access(config, base)


def _endpoint(base: str, name: str, mend: str) -> Iterator[Finding]:
    parts = urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield Finding("bad", f"{name} '{base}' is not an address", mend)
        return
    request = urllib.request.Request(base, method="GET")
    date = None
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            date = answer.headers.get("date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("date")  # any answer shows that it can be reached
    except (urllib.error.URLError, OSError, ValueError) as error:
        yield Finding("bad", f"{name} {parts.hostname} does not answer ({getattr(error, 'reason', error)})", mend)
        return
    yield Finding("good", f"{name} {parts.hostname} answers")
    if date:
        try:
            skew = abs((datetime.now(UTC) - parsedate_to_datetime(date)).total_seconds())
        except (TypeError, ValueError):
            return
        if skew > CLOCK_SKEW_S:
            yield Finding(
                "warn", f"the clock differs from that server's by {skew:.0f} s", "set the clock: windows depend on it"
            )


def _annotator(config: Config) -> Iterator[Finding]:
    from segmentation.registry import annotator_key

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
    try:
        annotator_key(config.annotate, weights_dir=weights, references=references, marks_model=config.llm.model)
    except NestError as error:
        yield Finding("bad", str(error), "")
    else:
        yield Finding("good", f"annotator {names} is complete")


def _segmenters(config: Config) -> Iterator[Finding]:
    from inference.segmenters.registry import check

    for name in config.score.segmenters:
        try:
            check(name)
        except NestError as error:
            yield Finding("bad", str(error), "'nest segmenters' lists them")


def _task_runner(config: Config) -> Iterator[Finding]:
    told = config.flows.task_runner
    module, _, name = told.partition(":")
    if told and (not name or importlib.util.find_spec(module) is None):
        yield Finding("bad", f"[flows] task_runner '{told}' is not installed", "pip install 'nest-data-engine[dask]'")


def _deployments(config: Config) -> Iterator[Finding]:
    told = [name for name in (config.flows.annotate_deployment, config.flows.score_deployment) if name]
    if told and not os.environ.get("PREFECT_API_URL"):
        yield Finding(
            "bad",
            f"{' and '.join(told)} are deployments of a Prefect server, and none is named",
            "set PREFECT_API_URL, or leave them out of [flows] to work in this process",
        )


def _hub(config: Config) -> Iterator[Finding]:
    if not config.hub.repo:
        yield Finding("good", "no [hub] repo: snapshots stay here")
        return
    if not os.environ.get("HF_TOKEN"):
        yield Finding("bad", "HF_TOKEN is not set", "export a token that may write to the repository")
    from flows.doctor_keys import hub_access

    yield from hub_access(config)
    if not config.snapshot.contact:
        yield Finding("bad", "[snapshot] contact is empty", "a published snapshot names where a removal is asked for")


def _prefect(config: Config) -> Iterator[Finding]:
    url = os.environ.get("PREFECT_API_URL")
    if not url:
        yield Finding("good", f"Prefect runs embedded, on {socket.gethostname()}")
        return
    yield from _endpoint(url.rstrip("/") + "/health", "the Prefect server", "start it, or unset PREFECT_API_URL")
