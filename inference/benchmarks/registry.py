"""Opening a benchmark by the text a user gives: a path, a Hub dataset, a window, or `loader:source?options`.

    NEST_250323_250411/              a snapshot's folder or Parquet file
    FudanCVL/NEST_250323_250411@main a snapshot on the Hub
    reasonseg:PATH?split=val         a loader by its name, with its options
    PATH?sha256=3f9a1c22             only if the data's digest begins so; every report prints it

A loader is a function from a source and keyword options to a `Benchmark`, in a module of its own; its line in
`LOADERS` makes it known. Modules are imported when asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from urllib.parse import parse_qsl

from engine.core.errors import ConfigError
from inference.benchmarks.base import Benchmark

#: loader name -> module and function; resolved when asked for
LOADERS: Mapping[str, str] = {
    "nest": "inference.benchmarks.nest:load",
    "nest-plus": "inference.benchmarks.nest_plus:load",
    "reasonseg": "inference.benchmarks.reasonseg:load",
    "refcoco": "inference.benchmarks.refcoco:load",
    "seg-zero": "inference.benchmarks.segzero:load",
}
WHOLE_NUMBERS = ("seed", "limit", "cutoff_lag_days")


def open_benchmark(text: str, *, snapshots: Path | None = None) -> Benchmark:
    """The benchmark a text names; `snapshots` is the folder where windows' snapshots lie.

    Raises `ConfigError` with the known loaders for a text that names none, and what the loader raises.
    """
    if not text.strip():
        raise ConfigError("no benchmark is named: give a snapshot's folder or window, or owner/name@revision")
    head, colon, rest = text.partition(":")
    if colon and head in LOADERS:
        source, _, query = rest.partition("?")
        return _with_options(_loader(head), source, query, text)
    source, _, query = text.partition("?")
    if snapshots is not None and not Path(source).exists():
        for name in (source, f"NEST_{source}"):
            if (snapshots / name).is_dir():
                source = str(snapshots / name)
                break
    if Path(source).exists() or _looks_like_hub(source):
        return _with_options(_loader("nest"), source, query, text)
    near = difflib.get_close_matches(head, LOADERS, n=1)
    hint = f" (did you mean {near[0]}:?)" if colon and near else ""
    raise ConfigError(
        f"there is no benchmark '{text}'{hint}: give a snapshot's folder or window, owner/name@revision, or one of "
        f"{', '.join(f'{name}:SOURCE' for name in LOADERS)}"
    )


def _looks_like_hub(text: str) -> bool:
    return text.count("/") == 1 and not text.startswith((".", "/", "~")) and ":" not in text


def _loader(name: str) -> Callable[..., Benchmark]:
    module, _, function = LOADERS[name].partition(":")
    found: Callable[..., Benchmark] = getattr(import_module(module), function)
    return found


def _with_options(load: Callable[..., Benchmark], source: str, query: str, text: str) -> Benchmark:
    known = {*signature(load).parameters} - {"source", "path"} | {"limit", "sha256"}
    options: dict[str, object] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in known:
            raise ConfigError(f"'{text}' has no option '{key}': there are {', '.join(sorted(known))}")
        if key in WHOLE_NUMBERS and not (value.isascii() and value.isdecimal() and len(value) < 19):
            raise ConfigError(f"'{text}': {key} is a whole number, got '{value}'")
        options[key] = int(value) if key in WHOLE_NUMBERS else value
    limit, pinned = options.pop("limit", None), str(options.pop("sha256", "")).lower()
    if limit == 0:
        raise ConfigError(f"'{text}': limit=0 leaves no sample to score, give at least 1")
    try:
        found = load(source, **options)
    except TypeError as error:
        raise ConfigError(f"'{text}': its options do not fit: {error}") from error
    if pinned and (len(pinned) < 8 or not found.digest.startswith(pinned)):
        raise ConfigError(f"'{text}': the data has the sha256 {found.digest}: it is not what was pinned")
    return found.take(limit) if isinstance(limit, int) else found
