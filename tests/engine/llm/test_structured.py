"""Reading JSON out of replies: one repair, no completion, and the laws of the schema subset."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.llm.structured import NotStructured, mismatch, read_object, strict

ANY = {"type": "object"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), JSON, max_size=4))
def test_what_stands_around_a_whole_object_is_dropped(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    pretty = json.dumps(value, ensure_ascii=False, indent=1)
    for shown in (text, f" {text}\n", f"```json\n{pretty}\n```", f"```\n{text}\n```", f"{text}\n\nAnything else?"):
        assert read_object(shown, ANY) == value
    assert read_object(f"<think>maybe {{a}} or {{}}?</think>\n{text}", ANY) == value


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), JSON, min_size=1, max_size=4), st.data())
def test_a_cut_object_is_never_completed(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps({"outer": value})
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    schema = {"type": "object", "required": ["outer"]}
    try:
        found = read_object(cut, schema)
    except NotStructured:
        return
    # an inner object may be whole, but only if it is an `outer` of its own
    assert found in json.loads(f"[{json.dumps(list(_objects(value)))}]")[0]


def _objects(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for item in inner for found in _objects(item))]


@pytest.mark.parametrize(
    ("value", "schema", "says"),
    [
        ({"a": 1}, {"type": "object", "required": ["b"]}, "lacks 'b'"),
        ({"a": "x"}, {"properties": {"a": {"type": "integer"}}}, "not of type integer"),
        ({"a": True}, {"properties": {"a": {"type": "integer"}}}, "not of type integer"),
        ({"a": "x"}, {"properties": {"a": {"enum": ["y", "z"]}}}, "not one of y, z"),
        ({"a": [1, "x"]}, {"properties": {"a": {"items": {"type": "integer"}}}}, r"a[1] is not"),
        ({"a": [1]}, {"properties": {"a": {"minItems": 2}}}, "too short"),
        ({"a": "abc"}, {"properties": {"a": {"maxLength": 2}}}, "too long"),
        ({"a": 5}, {"properties": {"a": {"maximum": 4}}}, "out of range"),
        ({"a": 5}, {"properties": {}, "additionalProperties": False}, "unknown 'a'"),
        ([], {"type": "object"}, "not of type object"),
    ],
)
def test_mismatches(value: Any, schema: Any, says: str) -> None:
    assert says in mismatch(value, schema)


def test_strict_form() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "string"}}}}},
        "required": [],
    }
    found = strict(schema)
    assert found["required"] == ["a"]
    inner = found["properties"]["a"]["items"]
    assert (inner["required"], inner["additionalProperties"]) == (["b"], False)


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(NotStructured, match="surrogate"):
        read_object('{"a": "\\ud83d"}', ANY)
    assert read_object('{"a": "\\ud83d\\ude00"}', ANY) == {"a": "😀"}
