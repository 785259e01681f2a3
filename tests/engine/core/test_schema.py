"""Records: frozen, closed, versioned, and always the same bytes."""

import json
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import Field, ValidationError

from engine.core.errors import ConfigError
from engine.core.masks import decode_rle, encode_png, encode_rle
from engine.core.schema import Code, Record, Rejected, Rle, Stage


class _Old(Record):
    VERSION: ClassVar[int] = 3
    UPGRADES: ClassVar[dict[int, Any]] = {
        1: lambda raw: {"name": raw["title"]},
        2: lambda raw: {**raw, "count": 1},
    }
    schema_version: int = Field(default=3)
    name: str
    count: int


def test_old_versions_stay_readable() -> None:
    assert _Old.read({"schema_version": 1, "title": "x"}) == _Old(name="x", count=1)
    assert _Old.read({"schema_version": 2, "name": "x"}) == _Old(name="x", count=1)


def test_newer_versions_and_unknown_fields_are_refused() -> None:
    with pytest.raises(ConfigError, match="update"):
        _Old.read({"schema_version": 4})
    with pytest.raises(ValidationError):
        Rejected.read({"item": "a", "stage": "collect", "code": "no_date", "colour": 1})
    with pytest.raises(ValidationError):
        Rejected.read({"item": "a", "stage": "collect", "code": "bad_luck"})


@given(st.text(), st.text())
def test_a_line_reads_back(item: str, detail: str) -> None:
    item = item.encode("utf-8", "ignore").decode()
    detail = detail.encode("utf-8", "ignore").decode()
    record = Rejected(item=item, stage=Stage.ASK, code=Code.NO_FACT, detail=detail)
    assert Rejected.read(json.loads(record.line())) == record
    assert "\n" not in record.line()


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=40)))
def test_masks_survive_rle(mask: Any) -> None:
    rle = encode_rle(mask)
    assert rle.size == mask.shape
    assert (decode_rle(Rle.model_validate_json(rle.model_dump_json())) == mask).all()


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=300)), st.integers(0, 3))
@settings(max_examples=60)
def test_decoding_equals_pycocotools(mask: Any, blocks: int) -> None:
    from pycocotools import mask as coco

    mask = np.kron(mask, np.ones((1, blocks + 1), dtype=bool))
    rle = encode_rle(mask)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs = coco.decode({"size": list(rle.size), "counts": rle.counts.encode()})
    assert (decode_rle(rle) == theirs.astype(bool)).all()


def test_a_mask_is_not_transposed() -> None:
    mask = np.zeros((3, 5), dtype=bool)
    mask[0, 4] = True
    assert decode_rle(encode_rle(mask))[0, 4]


@pytest.mark.parametrize("counts", ["", "zz", "ä", "0" * 40])
def test_broken_counts_are_an_error(counts: str) -> None:
    with pytest.raises(ValueError):
        decode_rle(Rle(size=(4, 4), counts=counts))


def test_png_masks_are_grey_0_and_255() -> None:
    import io

    from PIL import Image

    mask = np.eye(4, dtype=bool)
    picture = Image.open(io.BytesIO(encode_png(mask)))
    assert picture.mode == "L"
    assert set(np.unique(np.asarray(picture))) == {0, 255}
