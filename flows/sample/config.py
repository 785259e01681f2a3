"""What `nest demo` sets so that the ordinary path runs over the sample week: no network, no key, no GPU."""

from __future__ import annotations

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
