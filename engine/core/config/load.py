"""Reading `nest.toml` and the environment into one frozen `Config`.

Order, later wins: defaults, the file, `NEST__SECTION__KEY` in the environment, overrides of the command line.
Secrets are never part of a config: `OPENAI_API_KEY` and `HF_TOKEN` are read where they are used.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from engine.core.config.sections import (
    AnnotateSection,
    AskSection,
    CollectSection,
    CredentialsSection,
    FlowsSection,
    HubSection,
    LlmSection,
    ReviewSection,
    RoseSection,
    ScoreSection,
    Section,
    SnapshotSection,
    SourceSection,
    WindowSection,
)
from engine.core.errors import ConfigError

#: What pydantic says in Python's words, in those of the file.
_PLAIN = {
    "tuple_type": 'write a list: ["one", "two"]',
    "path_type": "write the path of a folder or file as text",
    "dict_type": "write a table of keys and values",
    "model_type": "write a section of keys and values",
}
FILE_NAME = "nest.toml"
PREFIX = "NEST__"


class Config(Section):
    """The whole configuration; one attribute per section of `nest.toml`."""

    home: Path = Path("nest-data")
    """Where everything is kept; `NEST_HOME` wins."""
    window: WindowSection = WindowSection()
    source: tuple[SourceSection, ...] = ()
    collect: CollectSection = CollectSection()
    llm: LlmSection = LlmSection()
    ask: AskSection = AskSection()
    annotate: AnnotateSection = AnnotateSection()
    snapshot: SnapshotSection = SnapshotSection()
    hub: HubSection = HubSection()
    score: ScoreSection = ScoreSection()
    rose: RoseSection = RoseSection()
    flows: FlowsSection = FlowsSection()
    review: ReviewSection = ReviewSection()
    credentials: CredentialsSection = CredentialsSection()
    base: Path = Field(default=Path("."), exclude=True)
    """Folder of the file; relative paths in it start here."""

    @model_validator(mode="after")
    def _unique_sources(self) -> Config:
        names = [source.name for source in self.source]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources have the same name: {', '.join(twice)}")
        return self

    def resolve(self, path: Path) -> Path:
        """A path of the config as an absolute one; `~` is the user's own folder."""
        told = _expanded(path, "the configuration")
        return told if told.is_absolute() else (self.base / told).resolve()


def load_config(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Read the config. `path` None means the file that `NEST_CONFIG` names (workers run in folders of their own),
    else ./nest.toml if it is there, else defaults.

    Raises `ConfigError` with the file, the key and the nearest known key.
    """
    env = os.environ if environ is None else environ
    raw: dict[str, Any] = {}
    base = Path.cwd()
    if path is None and env.get("NEST_CONFIG"):
        path = _expanded(Path(env["NEST_CONFIG"]), "NEST_CONFIG")
    elif path is None and Path(FILE_NAME).exists():
        path = Path(FILE_NAME)
    if path is not None:
        raw, base = _read_file(path), path.resolve().parent
    where = str(path) if path else "the configuration"
    for name, value in sorted(env.items()):
        if name.startswith(PREFIX):
            _put(raw, name.removeprefix(PREFIX).lower().split("__"), _decode(value), name)
    if env.get("NEST_HOME"):
        raw["home"] = str(_expanded(Path(env["NEST_HOME"]), "NEST_HOME").absolute())
    for dotted, value in (overrides or {}).items():
        _put(raw, dotted.split("."), value, dotted)
    try:
        config = Config.model_validate({**raw, "base": base})
    except ValidationError as error:
        told = {".".join(str(part) for part in item["loc"]) for item in error.errors()}
        if told <= set(overrides or {}):
            where = "the options of the command"
        named = {name.removeprefix(PREFIX).lower().replace("__", "."): name for name in env if name.startswith(PREFIX)}
        if told <= named.keys():
            where = ", ".join(sorted(named[key] for key in told))
        raise ConfigError(f"{where}: {_explain(error)}") from error
    return config.model_copy(update={"home": config.resolve(config.home)})


def _expanded(path: Path, where: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{where}: '{path}' names the folder of a user that is not known here") from error


def _read_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no {path}: 'nest init' writes one") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _decode(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _put(raw: dict[str, Any], keys: list[str], value: Any, name: str) -> None:
    place = raw
    for key in keys[:-1]:
        inner = place.setdefault(key, {})
        if not isinstance(inner, dict):
            raise ConfigError(f"{name}: '{key}' is a value or a list, not a section")
        place = inner
    place[keys[-1]] = value


def _explain(error: ValidationError) -> str:
    parts = []
    for item in error.errors():
        place = [str(part) for part in item["loc"]]
        dotted = ".".join(place)
        if item["type"] == "extra_forbidden":
            near = difflib.get_close_matches(place[-1], _known(place[:-1]), n=1)
            hint = f", did you mean '{near[0]}'?" if near else f"; known are {', '.join(_known(place[:-1]))}"
            parts.append(f"unknown key '{dotted}'{hint}")
        elif place == ["source"] and item["type"] == "tuple_type":
            parts.append("sources are tables of a list: write [[source]] with two brackets")
        else:
            words = _PLAIN.get(item["type"], item["msg"])
            parts.append(f"'{dotted}': {words}" if dotted else words)
    return "; ".join(parts)


def _known(place: list[str]) -> list[str]:
    model: type[BaseModel] = Config
    for part in place:
        if part.isdigit():
            continue
        field = model.model_fields.get(part)
        if field is None:
            return []
        if part == "source":
            model = SourceSection
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            model = field.annotation
        else:
            return []
    return sorted(name for name in model.model_fields if name != "base")
