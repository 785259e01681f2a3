"""Base of everything that is written to disk or comes from outside.

Records are frozen, refuse unknown fields, and carry the version of their own schema. An older version
stays readable: a class lists functions in `UPGRADES`, one per old version, each taking the raw object of
version n and returning that of version n + 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.core.errors import ConfigError

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


class Value(BaseModel):
    """A frozen part of a record; it has no version of its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(Value):
    """A frozen object that travels on disk or over a network, with a `schema_version`."""

    VERSION: ClassVar[int] = 1
    UPGRADES: ClassVar[Mapping[int, Upgrade]] = {}

    schema_version: int = Field(default=1)

    def model_post_init(self, context: object, /) -> None:
        if self.schema_version != self.VERSION:
            raise ValueError(
                f"{type(self).__name__} is of schema version {self.schema_version}, this program reads "
                f"{self.VERSION}: use {type(self).__name__}.read() for older ones"
            )

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Self:
        """Build a record from a decoded JSON object of this or an older version.

        Raises `ConfigError` for a version newer than this program knows, and pydantic's `ValidationError`
        for an object that does not fit.
        """
        found = dict(raw)
        version = int(found.get("schema_version", 1))
        if version > cls.VERSION:
            raise ConfigError(
                f"a {cls.__name__} of schema version {version} was found, this program knows up to "
                f"{cls.VERSION}: update nest-data-engine"
            )
        while version < cls.VERSION:
            upgrade = cls.UPGRADES.get(version)
            if upgrade is None:
                raise ConfigError(f"{cls.__name__} of schema version {version} can no longer be read")
            found = upgrade(found)
            version += 1
            found["schema_version"] = version
        return cls.model_validate_json(json.dumps(found))

    @classmethod
    def read_json(cls, data: str | bytes) -> Self:
        """The same from JSON text; a record of this version is checked while it is parsed, which takes a fraction of
        the memory. Raises `ValueError` for what is no JSON."""
        try:
            return cls.model_validate_json(data)
        except ValueError:  # an older one, or one that does not fit: then in the words of `read`
            return cls.read(json.loads(data))

    def line(self) -> str:
        """One line of canonical JSON: the same record always gives the same bytes."""
        return canonical_json(self.model_dump(mode="json"))


def why(error: Exception, *, shown: int = 3) -> str:
    """What is wrong with a record in one line: each field by its path and the reason, at most `shown` of them. Any
    other error says it in its own words."""
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = []
    for one in found[:shown]:
        place = ".".join(str(part) for part in one["loc"])
        told.append(f"{place}: {one['msg']}" if place else str(one["msg"]))
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return "; ".join(told) + more


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and real Unicode; refuses NaN and infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
