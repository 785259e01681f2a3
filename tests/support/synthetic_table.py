"""Binding and masks on the harder synthetic set: outcomes, the curve over the margin, what each gate does.

PYTHONPATH=tests:. python -m support.synthetic_table record [--scenes 100]     takes some minutes
PYTHONPATH=tests:. python -m support.synthetic_table table [--held-out]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.core.config.sections import AnnotateSection
from engine.core.schema import GateFigure
from segmentation.binding import Unbound
from support.synthetic_evidence import CONFIG, FILE, HELD_OUT, SEEDS, Recorded, read, record


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one named thing: bound or not, rightly or not, and how well it was cut out."""

    type: str
    margin: float
    rule: str
    right: bool
    iou: float
    gates: dict[str, float]
    code: str = ""

    def passes(self, *, without: str = "", config: AnnotateSection = CONFIG) -> bool:
        """Whether all gates pass, or all but one."""
        return all(figure.passed for figure in held(self.gates, config) if figure.name != without)


def outcomes(recorded: Sequence[Recorded], **how: Any) -> Iterator[Outcome]:
    """One per named thing."""
    for scene in recorded:
        for number, decision in enumerate(scene.decide(**{"min_margin": 0.0, **how})):
            entity = scene.names[number]
            if isinstance(decision, Unbound):
                yield Outcome(entity.type, 0.0, "", False, 0.0, {}, decision.code.value)
                continue
            chosen = decision.binding.candidate
            cut = scene.cut[number][str(chosen)]
            right = scene.truth[chosen] == number
            yield Outcome(entity.type, decision.binding.margin, decision.binding.rule, right, cut["iou"], cut["gates"])


def held(figures: dict[str, float], config: AnnotateSection) -> list[GateFigure]:
    """Recorded figures against a config's thresholds."""
    least = {
        "area_min": config.min_area_share,
        "score": config.min_mask_score,
        "stability": config.min_stability,
        "box_fill": config.min_box_fill,
        "face": config.min_face_share,
    }
    most = {
        "area_max": config.max_area_share,
        "parts": config.max_parts_loss,
        "overlap": config.max_overlap,
        "border": config.max_border_share,
    }
    return [
        GateFigure(name=name, value=value, passed=value >= least[name] if name in least else value <= most[name])
        for name, value in figures.items()
    ]


def curve(found: Sequence[Outcome], margins: Sequence[float]) -> list[dict[str, float]]:
    """Precision, yield and mean overlap of what is bound with at least a margin; gates not applied."""
    rows = []
    for margin in margins:
        kept = [item for item in found if item.rule and item.margin >= margin]
        right = [item for item in kept if item.right]
        rows.append(
            {
                "margin": margin,
                "bound": len(kept),
                "yield": len(kept) / len(found),
                "precision": len(right) / len(kept) if kept else 1.0,
                "mean_iou": float(np.mean([item.iou for item in kept])) if kept else 0.0,
            }
        )
    return rows


def table(recorded: Sequence[Recorded]) -> str:
    """The curve, the effect of each gate, and of leaving evidence out, as text."""
    found = list(outcomes(recorded))
    lines = [f"{len(recorded)} scenes, {len(found)} named things"]
    lines += ["margin  bound  yield  precision  mean IoU"]
    for row in curve(found, (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)):
        lines.append("{margin:6.2f}  {bound:5d}  {yield:5.3f}  {precision:9.4f}  {mean_iou:8.3f}".format(**row))
    bound = [item for item in found if item.rule and item.margin >= CONFIG.min_margin]
    passed = [item for item in bound if item.passes()]
    lines += [f"gates: {len(bound)} bound, {len(passed)} pass all; {_told(passed)}"]
    for name in sorted({name for item in bound for name in item.gates}):
        fails = [item for item in bound if not all(g.passed for g in held(item.gates, CONFIG) if g.name == name)]
        alone = [item for item in fails if item.passes(without=name)]
        lines.append(f"  {name:10s} fails {len(fails):3d}, alone {len(alone):3d}: {_told(fails)}")
    lines += _stricter(bound)
    for label, how in (
        ("without references", {"references": False}),
        ("without place words", {"places": False}),
        ("without both", {"references": False, "places": False}),
    ):
        some = [item for item in outcomes(recorded, **how) if item.rule and item.margin >= CONFIG.min_margin]
        lines.append(f"{label}: yield {len(some) / len(found):.3f}, {_told(some)}")
    codes: dict[str, int] = {}
    rules: dict[str, list[int]] = {}
    for item in found:
        if item.code:
            codes[item.code] = codes.get(item.code, 0) + 1
        else:
            rules.setdefault(item.rule, [0, 0])[0 if item.right else 1] += 1
    lines += [f"unbound: {dict(sorted(codes.items()))}", f"rules (right, wrong): {dict(sorted(rules.items()))}"]
    return "\n".join(lines)


#: Stricter thresholds than the defaults: the gate's figure, the setting, and the values.
STRICTER = (
    ("score", "min_mask_score", (0.7, 0.8)),
    ("stability", "min_stability", (0.9, 0.95)),
    ("box_fill", "min_box_fill", (0.5, 0.6)),
    ("border", "max_border_share", (0.2, 0.1)),
    ("area_min", "min_area_share", (0.01,)),
    ("parts", "max_parts_loss", (0.02,)),
    ("overlap", "max_overlap", (0.02,)),
    ("face", "min_face_share", (0.95,)),
)


def _stricter(bound: Sequence[Outcome]) -> list[str]:
    """What each gate would take at stricter thresholds, as shares of what is bound and mean overlap of that."""
    lines = []
    for gate, setting, values in STRICTER:
        told = []
        for value in values:
            config = CONFIG.model_copy(update={setting: value})
            lost = [item for item in bound if any(f.name == gate and not f.passed for f in held(item.gates, config))]
            overlap = f" ({np.mean([item.iou for item in lost]):.3f})" if lost else ""
            told.append(f"at {value}: {len(lost) / len(bound):.1%}{overlap}")
        lines.append(f"  {gate:10s} " + ", ".join(told))
    return lines


def _told(items: Sequence[Outcome]) -> str:
    if not items:
        return "none"
    right = sum(item.right for item in items)
    return f"{right} of {len(items)} right ({right / len(items):.4f}), mean IoU {np.mean([i.iou for i in items]):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--held-out", action="store_true", help="the recording of the other seed")
    told = parser.parse_args()
    path = HELD_OUT if told.held_out else FILE
    if told.what == "record":
        path.parent.mkdir(parents=True, exist_ok=True)
        made = record(told.scenes, seed=SEEDS[path])
        rows = ",\n".join(json.dumps(row, sort_keys=True, separators=(",", ":")) for row in made["scenes"])
        path.write_text(f'{{"versions":{json.dumps(made["versions"])},"scenes":[\n{rows}\n]}}\n', encoding="utf-8")
    sys.stdout.write(table(read(path)) + "\n")


if __name__ == "__main__":
    main()
