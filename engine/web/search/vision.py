"""What a web detection service says an image shows: names, from pages that carry the same or a like picture.

Google Cloud Vision's WEB_DETECTION is what the paper uses. The service looks at today's web and takes no date, so names
from here may be newer than a sample's cut-off; they only choose among candidates that were found before it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from engine.core.geometry import Image
from engine.core.images import encode_jpeg
from engine.core.protocols import Meter
from engine.web.search.api import Api

#: Names taken from one image, and the least score of one (the service's own scale, no probability).
MAX_ENTITIES = 20
MIN_SCORE = 0.2


@dataclass(frozen=True, slots=True)
class ImageEntity:
    """A name that a service gives to what is in an image, with its score."""

    name: str
    score: float = 0.0


class ImageEntities(Protocol):
    """Names of what is in an image: web detection, or a vision model."""

    name: str

    async def entities(self, image: Image) -> Sequence[ImageEntity]: ...


class GoogleVision:
    """`ImageEntities` over Cloud Vision."""

    name = "google-vision"
    HOST = "https://vision.googleapis.com"

    def __init__(self, key: str, *, host: str = HOST, api: Api | None = None) -> None:
        self._api = api or Api("Google Cloud Vision", secret="GOOGLE_API_KEY", headers={"X-Goog-Api-Key": key})
        self._host = host.rstrip("/")

    def metered(self, meter: Meter) -> Self:
        """Let every call be paid for."""
        self._api.meter = meter
        return self

    async def close(self) -> None:
        await self._api.close()

    async def entities(self, image: Image) -> list[ImageEntity]:
        """Web entities, best first, then the service's best guesses."""
        body = {
            "requests": [
                {
                    "image": {"content": base64.b64encode(encode_jpeg(image)).decode("ascii")},
                    "features": [{"type": "WEB_DETECTION", "maxResults": MAX_ENTITIES}],
                }
            ]
        }
        found = await self._api.post(f"{self._host}/v1/images:annotate", body)
        responses = found.get("responses")
        first = responses[0] if isinstance(responses, list) and responses and isinstance(responses[0], dict) else {}
        web = first.get("webDetection")
        detection = web if isinstance(web, dict) else {}
        named = [
            ImageEntity(name=str(row["description"]).strip(), score=float(row.get("score", 0.0)))
            for row in detection.get("webEntities", [])
            if isinstance(row, dict) and row.get("description")
        ]
        kept = [entity for entity in named if entity.score >= MIN_SCORE]
        guesses = [
            ImageEntity(name=str(row["label"]).strip())
            for row in detection.get("bestGuessLabels", [])
            if isinstance(row, dict) and row.get("label")
        ]
        return sorted(kept, key=lambda entity: (-entity.score, entity.name)) + guesses
