"""Outlines drawn by hand around the subjects of the bundled photographs, in pixels of the photograph.

They were drawn point by point over an enlarged grid, and checked as overlays. No segmenter took part, so that the
truth they give owes nothing to the annotators that are measured against it. A closed Catmull-Rom spline runs through
the points; `bottom` is a straight cut, where a portrait is cropped to a bust.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from engine.core.geometry import Floats

SUBSAMPLE = 4


@dataclass(frozen=True, slots=True)
class Outline:
    """A closed outline. `unit` is the size of a photo pixel in the grid the points were read from."""

    photo: str
    unit: float
    points: tuple[tuple[float, float], ...]
    origin: tuple[float, float] = (0.0, 0.0)
    bottom: float | None = None

    def curve(self) -> npt.NDArray[np.float64]:
        """The spline's points (N, 2) in photo pixels."""
        base = np.array(self.points, float) / self.unit + np.array(self.origin)
        before, after, beyond = np.roll(base, 1, 0), np.roll(base, -1, 0), np.roll(base, -2, 0)
        parts = []
        for t in np.linspace(0, 1, 8, endpoint=False):
            parts.append(
                0.5
                * (
                    2 * base
                    + (after - before) * t
                    + (2 * before - 5 * base + 4 * after - beyond) * t**2
                    + (3 * base - before - 3 * after + beyond) * t**3
                )
            )
        return np.stack(parts, 1).reshape(-1, 2)

    def alpha(self, height: int, width: int) -> Floats:
        """Coverage (H, W) in 0..1 with smooth edges."""
        fine = np.zeros((height * SUBSAMPLE, width * SUBSAMPLE), np.uint8)
        curve = np.round(self.curve() * SUBSAMPLE).astype(np.int32)
        cv2.fillPoly(fine, [curve], 255)
        if self.bottom is not None:
            fine[int(self.bottom * SUBSAMPLE) :] = 0
        grown = cv2.resize(fine, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(grown / 255.0, np.float32)


COLLINS = Outline(
    photo="astronaut.png",
    unit=2.1328,
    bottom=343,
    points=(
        *((500, 34), (545, 40), (585, 60), (615, 90), (632, 125), (643, 180), (640, 215), (630, 240), (610, 268)),
        *((590, 285), (574, 292), (566, 320), (555, 345), (548, 376), (575, 386), (603, 410), (630, 450), (647, 490)),
        *((660, 506), (690, 522), (720, 550), (740, 590), (756, 640), (768, 690), (776, 745), (770, 800), (400, 800)),
        *((48, 800), (50, 745), (58, 690), (75, 650), (88, 600), (105, 570), (125, 535), (160, 500), (200, 470)),
        *((230, 452), (245, 438), (243, 405), (255, 388), (272, 360), (300, 335), (340, 321), (394, 318), (394, 300)),
        *((388, 283), (375, 277), (366, 260), (350, 243), (336, 220), (328, 180), (328, 150), (340, 125), (365, 100)),
        *((400, 84), (412, 66), (440, 50), (470, 38)),
    ),
)
HOPPER = Outline(
    photo="grace_hopper.jpg",
    unit=1.96875,
    bottom=438,
    points=(
        *((505, 45), (555, 52), (590, 72), (640, 98), (675, 128), (693, 167), (712, 172), (728, 200), (732, 260)),
        *((728, 330), (722, 358), (737, 372), (738, 400), (728, 440), (718, 490), (710, 530), (712, 560), (690, 592)),
        *((665, 604), (652, 607), (652, 620), (690, 655), (760, 690), (840, 722), (900, 738), (950, 763), (972, 785)),
        *((985, 815), (1000, 860), (1006, 900), (990, 940), (500, 940), (60, 940), (46, 900), (52, 866), (60, 840)),
        *((70, 808), (85, 775), (120, 745), (180, 725), (260, 695), (340, 668), (385, 637), (402, 618), (400, 600)),
        *((390, 588), (365, 572), (330, 548), (315, 510), (322, 470), (318, 440), (305, 420), (300, 390), (306, 355)),
        *((300, 335), (300, 300), (299, 250), (303, 215), (325, 185), (345, 165), (352, 130), (375, 105), (425, 82)),
        *((434, 68), (460, 50)),
    ),
)
CUP = Outline(
    photo="coffee.png",
    unit=2.0,
    points=(
        *((565, 36), (640, 42), (706, 64), (755, 100), (789, 138), (818, 133), (848, 145), (846, 165), (835, 205)),
        *((868, 242), (907, 302), (937, 362), (955, 430), (952, 490), (932, 558), (900, 625), (850, 685), (780, 735)),
        *((700, 765), (600, 778), (500, 770), (400, 742), (310, 690), (240, 625), (185, 550), (160, 480), (153, 430)),
        *((163, 370), (185, 310), (220, 260), (270, 205), (320, 165), (362, 145), (396, 108), (440, 70), (495, 45)),
    ),
)
ROCKET = Outline(
    photo="rocket.jpg",
    unit=3.408,
    origin=(200.0, 0.0),
    bottom=407,
    points=(
        *((420, 431), (438, 450), (450, 480), (457, 515), (457, 560), (456, 600), (447, 615), (446, 700), (446, 900)),
        *((446, 1100), (447, 1300), (447, 1420), (388, 1420), (387, 1300), (388, 1100), (388, 900), (388, 700)),
        *((387, 615), (380, 600), (379, 560), (380, 510), (388, 478), (402, 450)),
    ),
)
