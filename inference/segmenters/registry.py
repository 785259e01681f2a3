"""Segmenters by name: one table for the built-in ones and for plugins (entry-point group `nest.segmenters`).

A plugin's entry point names a `Factory` (see `deps`); it returns a core `Segmenter`, a `Runner`, or a `Built` with both
and a wording. Nothing is imported before it is asked for. A name may have an argument after a colon: `rose:lisa` is
ROSE around LISA.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from urllib.parse import urlsplit

from engine.core.config import Config
from engine.core.errors import ConfigError
from engine.core.protocols import Segmenter
from inference.segmenters.base import Runner, SegmenterRunner
from inference.segmenters.deps import Built, Factory, InferenceDeps
from inference.segmenters.keys import segmenter_key

__all__ = [
    "BUILT_IN",
    "SegmenterInfo",
    "build",
    "check",
    "check_settings",
    "known",
    "make",
    "plugin_of",
    "require_address",
    "segmenter_key",
]

GROUP = "nest.segmenters"


@dataclass(frozen=True, slots=True)
class SegmenterInfo:
    """A row of `nest segmenters`: the name as it is written, what it needs, and what it is."""

    name: str
    needs: str
    about: str


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    where: str
    needs: str
    about: str
    argument: str = ""


_HERE = "inference.segmenters.builtin"
BUILT_IN: Mapping[str, _BuiltIn] = {
    "portable": _BuiltIn(f"{_HERE}:portable", "nothing", "kinds of things on a CPU, no names"),
    "grounded-sam": _BuiltIn(
        f"{_HERE}:grounded_sam", "[gpu], weights of [annotate]", "Grounding DINO's best box for the noun, SAM's mask"
    ),
    "rose": _BuiltIn(
        f"{_HERE}:rose", "what SEGMENTER needs, a search, references", "retrieval around any segmenter", "SEGMENTER"
    ),
    **{
        name: _BuiltIn(f"{_HERE}:{name.replace('-', '_')}", "as rose", about, "SEGMENTER")
        for name, about in (
            ("rose-irag", "ablation: the retrieved answer as the prompt"),
            ("rose-irag-tpe", "ablation: and background in the prompt"),
            ("rose-irag-vpe", "ablation: the answer as the prompt, and the check against references"),
            ("rose-full", "ablation: all modules, every sample retrieved"),
        )
    },
    "search-chat": _BuiltIn(
        f"{_HERE}:search_chat",
        "what SEGMENTER needs, a search-enabled chat model",
        "the chat model answers, then 'please segment <answer>'",
        "SEGMENTER",
    ),
    "lisa": _BuiltIn(f"{_HERE}:lisa", "[gpu], LISA-7B or -13B weights", "LISA, reasoning segmentation"),
    "sesame": _BuiltIn(f"{_HERE}:sesame", "[gpu], SESAME-7B weights", "SESAME, which may deny the premise"),
    "read": _BuiltIn(f"{_HERE}:read", "[gpu], READ-7B weights", "READ, reasoning to attend"),
    "sam2": _BuiltIn(
        f"{_HERE}:sam2",
        "[gpu], weights of SAM 2 and the detector",
        "the detector's best box for the noun, SAM 2's mask",
    ),
    "sam3": _BuiltIn(f"{_HERE}:sam3", "[gpu], SAM 3 weights", "SAM 3 with the noun phrase as its concept"),
    "seg-zero": _BuiltIn(
        f"{_HERE}:seg_zero", "a vision endpoint, mask model of [annotate]", "a reasoning model's boxes, SAM's mask"
    ),
    "llmseg": _BuiltIn(f"{_HERE}:llmseg", "a vision chat model", "outlines traced by a chat model, no training"),
    "remote": _BuiltIn(
        f"{_HERE}:remote", "a server, see docker/segmenter", "any model behind a small HTTP protocol", "URL"
    ),
    **{
        name: _BuiltIn(f"{_HERE}:{name}", f"a server at [score] endpoints.{name}", f"{about}, behind the same protocol")
        for name, about in (("seem", "SEEM"), ("gres", "GRES (ReLA)"), ("cris", "CRIS"))
    },
    "files": _BuiltIn(f"{_HERE}:files", "a folder or file of masks", "predictions made elsewhere", "PATH"),
}


#: Segmenters behind the protocol of `remote`.
SERVED = ("remote", "seem", "gres", "cris")


def known() -> list[SegmenterInfo]:
    """All segmenters, built-in ones first; plugins are listed without being imported."""
    found = [
        SegmenterInfo(f"{name}:{spec.argument}" if spec.argument else name, spec.needs, spec.about)
        for name, spec in BUILT_IN.items()
    ]
    return found + [
        SegmenterInfo(point.name, "see its package", f"plugin {point.value}")
        for point in sorted(_plugins().values(), key=lambda point: point.name)
    ]


def check(name: str) -> None:
    """Raise `ConfigError` if no segmenter has this name (or the one after a wrapper's colon), or if it takes nothing
    after a colon and gets something; imports nothing."""
    head, colon, argument = name.partition(":")
    _point(head)
    spec = BUILT_IN.get(head)
    if spec is not None and colon and not spec.argument:
        wrappers = ", ".join(other for other, found in BUILT_IN.items() if found.argument == "SEGMENTER")
        raise ConfigError(
            f"'{name}': '{head}' takes nothing after a colon; write '{head}', or put a wrapper before it ({wrappers})"
        )
    if spec is None:
        return
    if spec.argument == "PATH" and not argument.strip():
        raise ConfigError(f"'{head}' reads predictions from a place: write '{head}:PATH'")
    if spec.argument == "URL" and colon:
        _require_url(argument, f"'{name}'", f"write '{head}:http://host:port', or '{head}' and set its endpoint")
    if spec.argument == "SEGMENTER":
        if not argument:
            raise ConfigError(f"'{name}' wraps a segmenter: write for example '{head}:portable'")
        inner = BUILT_IN.get(argument.partition(":")[0])
        if inner is not None and inner.argument in ("SEGMENTER", "PATH"):
            raise ConfigError(
                f"'{name}': '{head}' wraps a segmenter that takes a prompt, '{argument}' takes whole samples"
            )
        check(argument)


def check_settings(config: Config) -> None:
    """Raise `ConfigError` where `[score]` sets something for a segmenter that does not exist."""
    score = config.score
    for setting, names in (("options", score.options), ("endpoints", score.endpoints), ("weights", score.weights)):
        for name in names:
            try:
                _point(name.partition(".")[0])
            except ConfigError as error:
                raise ConfigError(f"[score] {setting}.{name}: {error}") from None
    for name, url in score.endpoints.items():
        _require_url(url, f"[score] endpoints.{name}", "write http://host:port")


def require_address(name: str, config: Config) -> None:
    """Raise `ConfigError` where a segmenter (or the one it wraps) is a server of its own and no address is known."""
    head, _, argument = name.partition(":")
    spec = BUILT_IN.get(head)
    if spec is not None and spec.argument == "SEGMENTER":
        require_address(argument, config)
    elif head in SERVED and not argument and not config.score.endpoints.get(head):
        hint = (
            "write 'remote:http://host:port', or set" if head == "remote" else "start one with docker/segmenter and set"
        )
        raise ConfigError(f"'{head}' is a server of its own: {hint} set [score] endpoints.{head}")


def make(name: str, config: Config, *, deps: InferenceDeps) -> Runner:
    """The runner called `name`. Raises `ConfigError` with the nearest known name, or with what is missing."""
    built = build(name, config, deps=deps)
    if built.runner is not None:
        return built.runner
    if built.segmenter is None:
        raise ConfigError(f"the factory of the segmenter '{name}' made nothing")
    runner = SegmenterRunner(built.segmenter, wording=built.wording, batch=config.rose.batch)
    runner.name = name
    return runner


def build(name: str, config: Config, *, deps: InferenceDeps) -> Built:
    """What the factory of `name` makes, in one form; for wrappers, which need the segmenter itself."""
    check(name)
    head, _, argument = name.partition(":")
    factory: Factory = _point(head).load()
    made = factory(config, deps=deps, argument=argument)
    if isinstance(made, Built):
        return made
    if isinstance(made, Segmenter):
        return Built(segmenter=made)
    return Built(runner=made)


def plugin_of(name: str) -> EntryPoint:
    """The entry point of a plugin (or of a built-in segmenter). Raises `ConfigError` for an unknown name."""
    return _point(name)


def _require_url(url: str, where: str, mend: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"{where}: '{url}' is no address: {mend}")


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def _point(head: str) -> EntryPoint:
    spec = BUILT_IN.get(head)
    if spec is not None:
        return EntryPoint(head, spec.where, GROUP)
    plugins = _plugins()
    if head in plugins:
        return plugins[head]
    names = sorted([*BUILT_IN, *plugins])
    near = difflib.get_close_matches(head, names, n=1)
    hint = f", did you mean '{near[0]}'?" if near else ";"
    raise ConfigError(f"there is no segmenter '{head}'{hint} known are {', '.join(names)}")
