"""What all sections of `nest.toml` are made of."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused."""

    NOT_IN_KEY: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, extra="forbid")

    def keyed(self) -> dict[str, Any]:
        """The part of the section that changes results, as plain JSON values."""
        return self.model_dump(mode="json", exclude=set(self.NOT_IN_KEY))
