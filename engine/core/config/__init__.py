"""Configuration: sections of `nest.toml`, and how they are read."""

from engine.core.config.load import Config, load_config
from engine.core.config.sections import (
    AnnotateSection,
    AskSection,
    CollectSection,
    HubSection,
    LlmSection,
    RoseSection,
    ScoreSection,
    Section,
    SnapshotSection,
    SourceSection,
    WindowSection,
)
from engine.core.config.sections_flows import FlowsSection
from engine.core.config.sections_review import KeysSection, ReviewSection

__all__ = [
    "AnnotateSection",
    "AskSection",
    "CollectSection",
    "Config",
    "FlowsSection",
    "HubSection",
    "KeysSection",
    "LlmSection",
    "ReviewSection",
    "RoseSection",
    "ScoreSection",
    "Section",
    "SnapshotSection",
    "SourceSection",
    "WindowSection",
    "load_config",
]
