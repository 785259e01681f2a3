"""Quality gates: is a mask good enough to be published? Each gate gives its figure, its threshold and the verdict."""

from engine.core.schema import GateFigure
from segmentation.gates.checks import CODES, Mine, check

__all__ = ["CODES", "GateFigure", "Mine", "check"]
