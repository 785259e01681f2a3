"""The scenes of the sample week: which place, which things, and what the caption says of their place."""

from __future__ import annotations

from dataclasses import dataclass

from flows.sample.make.compose import Placed


@dataclass(frozen=True, slots=True)
class Scene:
    """One picture. `names` are the named things in the caption's order as (slug, caption's place words);
    things that have no name there have no truth file."""

    slug: str
    place: str
    things: tuple[Placed, ...]
    names: tuple[tuple[str, str], ...]
    size: tuple[int, int] = (900, 600)
    seed: int = 1
    exif: int = 1


#: Cut-out -> (slug, name, type) of the entity it stands for.
ENTITIES = {
    "collins": ("eileen-collins", "Eileen Collins", "person"),
    "hopper": ("grace-hopper", "Grace Hopper", "person"),
    "smartphone": ("lumio-nova-7", "Lumio Nova 7", "product"),
    "laptop": ("corvid-book-14", "Corvid Book 14", "product"),
    "console": ("playdeck-duo", "Playdeck Duo", "product"),
    "watch": ("tidewatch-4", "Tidewatch 4", "product"),
    "vacuum": ("rondo-m3", "Rondo M3", "product"),
    "camera": ("merle-x1", "Merle X1", "product"),
    "bus": ("vireo-12e", "Vireo 12E", "product"),
    "speaker": ("sonara-drum", "Sonara Drum", "product"),
    "cup": ("brasa-doppio", "Brasa Doppio", "product"),
    "rocket": ("falcon-9", "Falcon 9", "product"),
}

SCENES = (
    Scene(
        "firsts-exhibition",
        "hall",
        (
            Placed("collins", 250, 602, 400, shadow=0.3),
            Placed("hopper", 690, 602, 410, shadow=0.3),
        ),
        (("collins", "left"), ("hopper", "right")),
        size=(960, 600),
        seed=101,
    ),
    Scene(
        "library-desk",
        "library",
        (
            Placed("hopper", 235, 604, 420, mirror=True, gain=1.06, shadow=0.3),
            Placed("collins", 745, 604, 372, mirror=True, gain=0.94, shadow=0.3),
        ),
        (("hopper", "left"), ("collins", "right")),
        size=(980, 600),
        seed=102,
    ),
    Scene(
        "fair-stand",
        "table",
        (
            Placed("smartphone", 200, 520, 190, angle=-4, lean=0.03),
            Placed("watch", 440, 500, 170, angle=5),
            Placed("console", 705, 480, 330, angle=-3, tilt=0.05),
        ),
        (("smartphone", "left"), ("watch", "centre"), ("console", "right")),
        seed=103,
    ),
    Scene(
        "planetarium-night",
        "dome",
        (
            Placed("collins", 640, 603, 430, gain=1.05, shadow=0.2),
            Placed("camera", 200, 560, 300, angle=-4),
        ),
        (("camera", "left"), ("collins", "right")),
        seed=104,
    ),
    Scene(
        "code-day",
        "brick",
        (
            Placed("hopper", 270, 603, 450, gain=1.04, shadow=0.25),
            Placed("laptop", 680, 560, 370, angle=2),
        ),
        (("hopper", "left"), ("laptop", "right")),
        seed=105,
    ),
    Scene(
        "living-room",
        "floor",
        (
            Placed("speaker", 250, 400, 210, gain=0.98),
            Placed("vacuum", 610, 520, 330, squash=0.72),
        ),
        (("speaker", "left"), ("vacuum", "right")),
        seed=106,
    ),
    Scene("line-9", "street", (Placed("bus", 455, 545, 760, gain=0.97),), (("bus", ""),), seed=107),
    Scene(
        "cafe-table",
        "desk",
        (
            Placed("cup", 270, 500, 390, gain=1.02),
            Placed("smartphone", 670, 530, 210, angle=14),
        ),
        (("cup", "left"), ("smartphone", "right")),
        seed=108,
    ),
    Scene("launch-pad", "launch", (), (("rocket", ""),), size=(600, 900), seed=109),
    Scene(
        "editing-desk",
        "desk",
        (
            Placed("laptop", 290, 500, 440, angle=-3),
            Placed("camera", 690, 470, 310, angle=6, gain=1.05),
        ),
        (("laptop", "left"), ("camera", "right")),
        seed=110,
    ),
    Scene(
        "games-night", "curtain", (Placed("console", 450, 440, 560, angle=7, tilt=0.06),), (("console", ""),), seed=111
    ),
    Scene(
        "design-prize",
        "table",
        (
            Placed("watch", 120, 520, 150, angle=-5),
            Placed("camera", 340, 490, 235, angle=3),
            Placed("speaker", 565, 510, 160),
            Placed("vacuum", 775, 510, 200, squash=0.9),
        ),
        (
            ("watch", "left"),
            ("camera", "second from left"),
            ("speaker", "third from left"),
            ("vacuum", "right"),
        ),
        seed=112,
    ),
    Scene(
        "medal-night",
        "curtain",
        (
            # the caption names them in the other order, and says nothing of places
            Placed("hopper", 255, 603, 470, gain=1.05, shadow=0.3),
            Placed("collins", 690, 603, 430, gain=0.96, shadow=0.3),
        ),
        (("collins", ""), ("hopper", "")),
        size=(920, 600),
        seed=113,
    ),
    Scene(
        "school-visit",
        "street",
        (
            Placed("bus", 560, 470, 620, gain=0.95),
            Placed("collins", 190, 603, 330, mirror=True, gain=1.0, shadow=0.3),
        ),
        (("collins", "left"), ("bus", "right")),
        seed=114,
    ),
    Scene("watch-window", "curtain", (Placed("watch", 450, 575, 270, angle=-9),), (("watch", ""),), seed=115),
    Scene(
        "navy-portrait",
        "curtain",
        (Placed("hopper", 320, 902, 520, gain=1.02, shadow=0.25),),
        (("hopper", ""),),
        size=(640, 900),
        seed=116,
        exif=6,
    ),
    Scene(
        "kitchen-shelf",
        "brick",
        (
            Placed("cup", 660, 480, 340, gain=0.97),
            Placed("speaker", 250, 520, 230, angle=-2),
        ),
        (("speaker", "left"), ("cup", "right")),
        seed=117,
    ),
    Scene(
        "park-ride",
        "lawn",
        (Placed("bus", 450, 500, 640, mirror=True, gain=1.04),),
        (("bus", ""),),
        seed=118,
    ),
)
