"""A task runner that calls at once and remembers what it was given: no server, no engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self


@dataclass
class Now:
    """A future whose work is done when it is asked for."""

    task: Any

    def result(self) -> Any:
        return self.task.fn()


class AtOnce:
    """`submit` as Prefect's task runners have it."""

    seen: ClassVar[list[str]] = []

    def __init__(self, *, address: str = "") -> None:
        self.address = address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.address = ""

    def submit(self, task: Any, parameters: dict[str, Any]) -> Now:
        self.seen.append(task.task_run_name)
        return Now(task)
