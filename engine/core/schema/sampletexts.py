"""The samples of a score report as one block of memory: a report of a hundred thousand is read and written like one of
a hundred, and each sample is an object only while it is looked at."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from typing import Annotated, overload

from pydantic import Field, PlainSerializer, ValidatorFunctionWrapHandler, WrapValidator

from engine.core.schema.base import Value

__all__ = ["PackedTexts", "SampleText", "SampleTexts"]


class SampleText(Value):
    """What a reader needs to recognise a sample; tags are the parts of the data it belongs to. Samples that share an
    image have one `cluster` number (-1: not known)."""

    id: str
    question: str
    answer: str = ""
    cluster: int = -1
    tags: dict[str, str] = Field(default_factory=dict)


_FIELDS = frozenset(SampleText.model_fields)


class PackedTexts(Sequence[SampleText]):
    """Checked samples in their order, some hundred bytes each; equal tags are kept once. Not to be changed."""

    __slots__ = ("_data", "_ends", "_tags")

    def __init__(self, samples: Iterable[SampleText] = ()) -> None:
        self._data = bytearray()
        self._ends = array("q", [0])
        self._tags: list[dict[str, str]] = []
        numbers: dict[tuple[tuple[str, str], ...], int] = {}
        for one in samples:
            key = tuple(one.tags.items())
            if key not in numbers:
                numbers[key] = len(numbers)
                self._tags.append(one.tags)
            told = [one.id, one.question, one.answer, one.cluster, numbers[key]]
            self._data += json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
            self._ends.append(len(self._data))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> SampleText: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[SampleText]: ...
    def __getitem__(self, place: int | slice) -> SampleText | Sequence[SampleText]:
        if isinstance(place, slice):
            return tuple(self[one] for one in range(*place.indices(len(self))))
        at = range(len(self))[place]
        name, question, answer, cluster, tags = json.loads(self._data[self._ends[at] : self._ends[at + 1]])
        return SampleText.model_construct(
            set(_FIELDS), id=name, question=question, answer=answer, cluster=cluster, tags=self._tags[tags]
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedTexts):
            return (self._data, self._ends, self._tags) == (other._data, other._ends, other._tags)
        if isinstance(other, (tuple, list)):
            return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} samples>"


def _packed(value: object, check: ValidatorFunctionWrapHandler) -> PackedTexts:
    return value if isinstance(value, PackedTexts) else PackedTexts(check(value))


#: A field of many samples: given as any list of them, held packed.
SampleTexts = Annotated[
    Sequence[SampleText],
    WrapValidator(_packed),
    PlainSerializer(lambda found: [one.model_dump() for one in found], return_type=list[dict[str, object]]),
]
