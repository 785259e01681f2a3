"""Reading JSON out of a model's text, and holding it against the schema that was asked for.

Only one repair is made: what stands around a whole JSON object (reasoning, one outer fence, a farewell) is dropped.
A cut or broken object is never completed. The schema subset is what our prompts use: type, properties, required,
additionalProperties, items, enum, minItems, maxItems, minLength, maxLength, minimum, maximum.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCE = re.compile(r"\A\s*```[A-Za-z0-9_-]*[ \t]*\n(.*)\n?[ \t]*```\s*\Z", re.S)
_THINK = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.S | re.I)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


class NotStructured(ValueError):
    """The text holds no object that fits; the message says what is wrong."""


def read_object(text: str, schema: Mapping[str, object]) -> dict[str, Any]:
    """The JSON object in `text`, valid against `schema` and writable as UTF-8. Raises `NotStructured`."""
    found = _decode(text)
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotStructured("the text holds half of a surrogate pair") from error
    problem = mismatch(found, schema)
    if problem:
        raise NotStructured(problem)
    assert isinstance(found, dict)  # the mismatch above has looked: schemas of ours are objects
    return found


def mismatch(value: object, schema: Mapping[str, Any], place: str = "$") -> str:
    """Why `value` does not fit, or an empty string."""
    kinds = schema.get("type")
    if kinds is not None:
        names = kinds if isinstance(kinds, list) else [kinds]
        if not any(_is(value, name) for name in names):
            return f"{place} is not of type {' or '.join(names)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} is {value!r}, not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str | list):
        what = "Length" if isinstance(value, str) else "Items"
        if len(value) < schema.get(f"min{what}", 0):
            return f"{place} is too short"
        if len(value) > schema.get(f"max{what}", len(value)):
            return f"{place} is too long"
    if isinstance(value, int | float) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{place} is out of range"
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            if problem := mismatch(item, schema["items"], f"{place}[{index}]"):
                return problem
    if isinstance(value, dict):
        return _object_mismatch(value, schema, place)
    return ""


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as OpenAI's strict mode wants it: every property required, none besides, no bounds on lengths."""
    dropped = {"minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum"}
    out = {key: value for key, value in schema.items() if key not in dropped}
    if isinstance(out.get("properties"), dict):
        out["properties"] = {name: strict(inner) for name, inner in out["properties"].items()}
        out["required"] = list(out["properties"])
        out["additionalProperties"] = False
    if isinstance(out.get("items"), dict):
        out["items"] = strict(out["items"])
    return out


def instruction(schema: Mapping[str, Any]) -> str:
    """The sentence that asks for JSON where the server cannot be told the schema."""
    shown = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    return f"Reply with one JSON object that follows this JSON Schema, and with nothing else:\n{shown}"


def _object_mismatch(value: Mapping[str, object], schema: Mapping[str, Any], place: str) -> str:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place} lacks '{name}'"
    for name, inner in value.items():
        if name in properties:
            if problem := mismatch(inner, properties[name], f"{place}.{name}"):
                return problem
        elif schema.get("additionalProperties") is False:
            return f"{place} has the unknown '{name}'"
    return ""


def _is(value: object, name: str) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    return isinstance(value, _TYPES[name])


def _decode(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        pass  # not JSON alone: look at what stands around it
    rest = _THINK.sub("", text, count=1)
    if match := _FENCE.match(rest):
        rest = match[1]
    decoder = json.JSONDecoder()
    start = rest.find("{")
    while start >= 0:
        try:
            found, _ = decoder.raw_decode(rest, start)
        except ValueError:
            start = rest.find("{", start + 1)
            continue
        if isinstance(found, dict):
            return found
        start = rest.find("{", start + 1)
    raise NotStructured("no JSON object in the reply")
