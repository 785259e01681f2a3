"""Which candidate box is the named entity: evidence of several kinds, combined in one place, or no answer."""

from segmentation.binding.candidates import Candidate, Named, Scene, candidates_of
from segmentation.binding.decide import Bound, Unbound, bind

__all__ = ["Bound", "Candidate", "Named", "Scene", "Unbound", "bind", "candidates_of"]
