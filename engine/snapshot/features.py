"""The columns of the published configs, declared once: as `datasets` features and, from these, as Arrow schema.

They are declared and never guessed from the rows, so that a thin or an empty week has the same types as a full
one. `datasets` is imported when first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datasets import Features

Publish = Literal["bytes", "urls"]
#: The columns that the published NEST set has, in its order.
DEFAULT_COLUMNS = ("id", "question", "answer", "images", "annotations")


def default_features(publish: Publish = "bytes") -> Features:
    """Config `default` (and `benchmark`). With `urls` there are no pixels: addresses, hashes, sizes and RLE."""
    from datasets import Features, Image, List, Value

    text = {name: Value("string") for name in ("id", "question", "answer")}
    if publish == "bytes":
        return Features({**text, "images": List(Image()), "annotations": List(Image())})
    return Features(
        {
            **text,
            "image_urls": List(Value("string")),
            "image_sha256": List(Value("string")),
            "masks": List(_rle()),
        }
    )


def provenance_features() -> Features:
    """Config `provenance`: one row per id, with everything that led to it. Lists named `image_*`, `boxes`, `masks`,
    `candidates`, `bindings` and `gates` are aligned with `images` of the same id; boxes and masks are in pixels of
    the published picture."""
    from datasets import Features, List, Value

    string, whole, real, yes = Value("string"), Value("int64"), Value("float64"), Value("bool")
    # milliseconds: the coarsest unit that Parquet has
    instant = Value("timestamp[ms, tz=UTC]")
    box = {"x1": real, "y1": real, "x2": real, "y2": real, "score": real, "phrase": string}
    evidence = {"kind": string, "candidate": whole, "score": real, "detail": string}
    return Features(
        {
            "id": string,
            "article_url": string,
            "canonical_url": string,
            "title": string,
            "source": string,
            "source_type": string,
            "publisher": string,
            "language": string,
            "domain": string,
            "term": string,
            "published_at": instant,
            "date_precision": string,
            "date_certain": yes,
            "date_witnesses": List(
                {
                    "kind": string,
                    "value": instant,
                    "precision": string,
                    "role": string,
                    "zone": string,
                    "raw": string,
                    "credible": yes,
                    "note": string,
                }
            ),
            "image_urls": List(string),
            "image_captions": List(string),
            "image_credits": List(string),
            "image_rights": List(string),
            "image_phashes": List(string),
            "image_sha256": List(string),
            "image_published_sha256": List(string),
            "image_widths": List(whole),
            "image_heights": List(whole),
            "image_archive": List(yes),
            "shrunk": string,
            "entity_type": string,
            "aliases": List(string),
            "question_kind": string,
            "novelty": List({"model": string, "label": string, "with_image": yes, "answer": string, "matches": yes}),
            "entities": List({"name": string, "type": string, "phrase": string, "position": string}),
            "phrase": string,
            "position": string,
            "caption": string,
            "evidence": string,
            "evidence_in": string,
            "writer": {"name": string, "version": string, "model": string, "prompt": string},
            "checks": List({"name": string, "passed": yes, "detail": string}),
            "boxes": List(List(real)),
            "masks": List(_rle()),
            "candidates": List(List(box)),
            "bindings": List({"candidate": whole, "rule": string, "margin": real, "evidence": List(evidence)}),
            "gates": List(List({"name": string, "value": real, "threshold": real, "passed": yes})),
            "models": List({"role": string, "name": string, "version": string, "weights_sha256": string}),
            "portable": yes,
        }
    )


def _rle() -> dict[str, object]:
    from datasets import List, Value

    return {"size": List(Value("int64")), "counts": Value("string")}
