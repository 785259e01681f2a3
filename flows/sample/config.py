"""What `nest demo` sets so that the ordinary path runs over the sample week: no network, no key, no GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from flows.sample.articles import SITES

#: The week of the sample, Monday to Sunday.
FIRST, LAST = date(2026, 11, 16), date(2026, 11, 22)
LABEL = "261116_261122"
REFERENCES = Path(__file__).parent / "references"


def sample_overrides(port: int) -> dict[str, Any]:
    """Overrides for `load_config`, with the sample publishers on loopback port `port`."""
    address = f"127.0.0.1:{port}"
    hosts = [site.host for site in SITES.values()]
    return {
        "source": [
            {
                "name": site.key,
                "type": "sitemap" if site.list_kind == "sitemap" else "feed",
                "url": f"{site.base}{site.list_path}",
                "publisher": site.name,
                "language": "en",
            }
            for site in SITES.values()
        ],
        "collect": {
            "resolve": dict.fromkeys(hosts, address),
            "allow_hosts": hosts,
            "per_host_delay_s": 0.0,
            "per_host": 4,
            "retries": 1,
            "timeout_s": 20.0,
        },
        "ask": {"writer": "template", "max_questions_per_image": 4},
        "annotate": {"detector": "portable", "mask_model": "portable", "references": str(REFERENCES)},
        "score": {"segmenters": ["portable", "rose:portable"]},
        "rose": {"answerer": "extract", "search": ["local"]},
    }


def to_toml(told: Mapping[str, Any]) -> str:
    """Settings as the text of a nest.toml: values of JSON kinds, sections, and lists of tables."""
    lines = [f"{key} = {_value(value)}" for key, value in told.items() if not _is_table(value) and value is not None]
    for key, value in told.items():
        if isinstance(value, Mapping):
            lines.append(f"[{key}]")
            lines += [f"{name} = {_value(v)}" for name, v in value.items() if v is not None]
        elif _is_table(value):
            for row in value:
                lines.append(f"[[{key}]]")
                lines += [f"{name} = {_value(v)}" for name, v in row.items()]
    return "\n".join(lines) + "\n"


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return json.dumps(value)
