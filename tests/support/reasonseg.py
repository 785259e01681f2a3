"""A folder as ReasonSeg is published: pictures beside JSON polygons, one without a target, one not in UTF-8."""

from __future__ import annotations

import json
from pathlib import Path

from engine.core.images import encode_jpeg
from support.evaluation import picture

SQUARE = [[2.0, 2.0], [21.0, 2.0], [21.0, 17.0], [2.0, 17.0]]
INNER = [[5.0, 5.0], [9.0, 5.0], [9.0, 9.0], [5.0, 9.0]]


def reason_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    texts = {"a": "the thing that keeps food cold", "b": "der Kühlschrank", "c": "nothing drawn"}
    shapes = {
        "a": [("ignore_1", INNER), ("target", SQUARE), ("flag", SQUARE)],
        "b": [("target", SQUARE)],
        "c": [("flag", SQUARE)],
    }
    for name, text in texts.items():
        (folder / f"{name}.jpg").write_bytes(encode_jpeg(picture(24, 32, seed=1)))
        found = {
            "text": [text, f"another wording of {name}"],
            "is_sentence": name == "a",
            "shapes": [{"label": label, "points": points} for label, points in shapes[name]],
        }
        # one of the published files is not UTF-8
        raw = json.dumps(found, ensure_ascii=False).encode("cp1252" if name == "b" else "utf-8")
        (folder / f"{name}.json").write_bytes(raw)
    return folder
