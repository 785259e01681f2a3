"""The sections of `nest.toml`, by family. Every field says in its description what it does, with unit and default.

Sections that change a stage's result are part of that stage's key; `NOT_IN_KEY` of a section names the fields
that don't (concurrency, paths, endpoints' addresses).
"""

from engine.core.config.sections.base import Section
from engine.core.config.sections.evaluation import RoseSection, ScoreSection
from engine.core.config.sections.flows import FlowsSection
from engine.core.config.sections.masks import AnnotateSection
from engine.core.config.sections.news import CollectSection, SourceSection, WindowSection
from engine.core.config.sections.people import CredentialsSection, ReviewSection
from engine.core.config.sections.published import HubSection, SnapshotSection
from engine.core.config.sections.questions import AskSection, LlmSection, Price

__all__ = [
    "AnnotateSection",
    "AskSection",
    "CollectSection",
    "CredentialsSection",
    "FlowsSection",
    "HubSection",
    "LlmSection",
    "Price",
    "ReviewSection",
    "RoseSection",
    "ScoreSection",
    "Section",
    "SnapshotSection",
    "SourceSection",
    "WindowSection",
]
