"""Configuration: sections of `nest.toml`, and how they are read."""

from engine.core.config.load import Config, load_config
from engine.core.config.sections import (
    AnnotateSection,
    AskSection,
    CollectSection,
    CredentialsSection,
    FlowsSection,
    HubSection,
    LlmSection,
    ReviewSection,
    RoseSection,
    ScoreSection,
    Section,
    SnapshotSection,
    SourceSection,
    WindowSection,
)

__all__ = [
    "AnnotateSection",
    "AskSection",
    "CollectSection",
    "Config",
    "CredentialsSection",
    "FlowsSection",
    "HubSection",
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
