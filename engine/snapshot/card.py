"""The card (`README.md`) of a snapshot: rendered from the data, never typed.

YAML and body come from the same counted figures. The Hub library's own classes build the front matter, and the
finished text is read back with them before it is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from engine.core.config import SnapshotSection
from engine.core.errors import TerminalError
from engine.core.schema import Erratum, FunnelStep, ModelRef, Overlap, Window
from engine.snapshot.features import default_features, provenance_features
from engine.snapshot.statistics import Statistics

if TYPE_CHECKING:
    from huggingface_hub import DatasetCard, DatasetCardData

#: The Hub's size categories: upper bound (exclusive) in rows, and the tag.
SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
#: Most lines of one group in the table of counts.
TOP = 12
#: Stands on a card without a removal contact; such a card is not pushed.
NO_CONTACT = "No removal contact was configured for this copy."


@dataclass(frozen=True, slots=True)
class CardFacts:
    """Everything the card tells. Bytes are of the Arrow tables (`*_bytes`) and of the files (`*_files_bytes`)."""

    window: Window
    config: SnapshotSection
    statistics: Statistics
    hub_repo: str
    revision: str
    supersedes: str | None
    funnel: Sequence[FunnelStep]
    models: Sequence[ModelRef]
    errata: Sequence[Erratum]
    tombstones: Sequence[str]
    overlaps: Sequence[Overlap]
    template_questions: int
    data_bytes: int
    data_files_bytes: int
    provenance_bytes: int
    provenance_files_bytes: int
    measured: Mapping[str, str] = field(default_factory=dict)
    sources_policy: str = ""


def size_category(rows: int) -> str:
    """The Hub's tag for a number of rows."""
    return next((tag for bound, tag in SIZES if rows < bound), "10M<n<100M")


def render(facts: CardFacts) -> str:
    """The card's text. Raises `TerminalError` if the Hub library does not read back what was written."""
    from jinja2 import Environment

    # `DatasetCard.from_template` does the same and parses the YAML twice more on the way
    environment = Environment(keep_trailing_newline=True, autoescape=False)
    template = environment.from_string((files("engine.snapshot") / "card.md.j2").read_text(encoding="utf-8"))
    text = template.render(card_data=_front_matter(facts).to_yaml(), **_body(facts)).rstrip() + "\n"
    check_card(text, facts.statistics.rows)
    return text


def read_card(text: str) -> tuple[DatasetCard, dict[str, Any], dict[str, Any]]:
    """A card, its `configs` and its `dataset_info` by config, read with the Hub's and the datasets library's own
    classes. Raises ValueError."""
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    try:
        card = DatasetCard(text)
        configs = MetadataConfigs.from_dataset_card_data(card.data)
        infos = DatasetInfosDict.from_dataset_card_data(card.data)
    except Exception as error:
        # the two libraries raise whatever odd YAML leads them to
        raise ValueError(f"the card's front matter cannot be read: {type(error).__name__}: {error}") from error
    return card, dict(configs), dict(infos)


def check_card(text: str, rows: int) -> None:
    """Read a card back and hold its counts against the rows. Raises `TerminalError`."""
    try:
        _, configs, infos = read_card(text)
    except ValueError as error:
        raise TerminalError(str(error)) from error
    told = {name: sum(split.num_examples for split in info.splits.values()) for name, info in infos.items()}
    if set(configs) != set(infos) or any(count != rows for count in told.values()):
        raise TerminalError(f"the card's configs say {told} rows, the data has {rows}")


def _front_matter(facts: CardFacts) -> DatasetCardData:
    from datasets import DatasetInfo, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCardData

    rows = facts.statistics.rows
    data = DatasetCardData(
        pretty_name=facts.window.name,
        language=list(facts.config.language),
        license=facts.config.license,
        annotations_creators=["machine-generated"],
        source_datasets=["original"],
        task_categories=["visual-question-answering", "image-segmentation"],
        size_categories=[size_category(rows)],
        tags=["news", "benchmark", "reasoning-segmentation", "named-entities"],
    )
    default, provenance = default_features(facts.config.publish), provenance_features()

    def info(features: Any, split: str, num_bytes: int, files_bytes: int) -> DatasetInfo:
        told = SplitDict({split: SplitInfo(split, num_bytes=num_bytes, num_examples=rows)})
        return DatasetInfo(features=features, splits=told, download_size=files_bytes, dataset_size=num_bytes)

    DatasetInfosDict(
        {
            "default": info(default, "train", facts.data_bytes, facts.data_files_bytes),
            "benchmark": info(default, "test", facts.data_bytes, facts.data_files_bytes),
            "provenance": info(provenance, "train", facts.provenance_bytes, facts.provenance_files_bytes),
        }
    ).to_dataset_card_data(data)
    MetadataConfigs(
        {
            "default": {"data_files": [{"split": "train", "path": "data/train-*"}], "default": True},
            "benchmark": {"data_files": [{"split": "test", "path": "data/train-*"}]},
            "provenance": {"data_files": [{"split": "train", "path": "provenance/train-*"}]},
        }
    ).to_dataset_card_data(data)
    return data


def _body(facts: CardFacts) -> dict[str, Any]:
    found = facts.statistics
    pinned = f', revision="{facts.revision}"' if facts.hub_repo else ""
    return {
        "name": facts.window.name,
        "rows": found.rows,
        "window_first": facts.window.first.isoformat(),
        "window_last": facts.window.last.isoformat(),
        "publish": facts.config.publish,
        "portable": found.portable > 0,
        "portable_rows": found.portable,
        "template_questions": facts.template_questions,
        "figures": _figures(facts),
        "counts": _counts(found),
        "usage_repo": facts.hub_repo or facts.window.name,
        "usage_revision": pinned,
        "hub_repo": facts.hub_repo,
        "revision": facts.revision,
        "supersedes": facts.supersedes,
        "funnel": [
            {"stage": step.stage, "found": step.found, "kept": step.kept, "losses": _losses(step.rejected)}
            for step in facts.funnel
        ],
        "measured": [(_cell(label), _cell(value)) for label, value in facts.measured.items()],
        "gates": [
            {
                "name": _cell(name),
                "mean": f"{sum(values) / len(values):.3f}",
                "lowest": f"{min(values):.3f}",
                "count": len(values),
            }
            for name, values in sorted(found.gates.items())
        ],
        "models": [{name: _cell(value) for name, value in model.model_dump().items()} for model in facts.models],
        "overlaps": facts.overlaps,
        "errata": [{name: _cell(value) for name, value in item.model_dump().items()} for item in facts.errata],
        "tombstones": len(facts.tombstones),
        "license": facts.config.license,
        "contact": facts.config.contact,
        "no_contact": NO_CONTACT,
        "sources_policy": facts.sources_policy,
    }


def _figures(facts: CardFacts) -> list[tuple[str, str]]:
    found = facts.statistics
    days = f"{found.first} to {found.last}" if found.first else "-"
    shares = sorted(found.area_shares)
    median = f"{100 * shares[len(shares) // 2]:.1f} % of the picture" if shares else "-"
    return [
        ("Question-answer pairs", str(found.rows)),
        ("Distinct pictures", str(len(found.images))),
        ("Articles", str(len(found.articles))),
        ("Distinct answers", str(len(found.answers))),
        ("Named entities per picture (mean)", f"{found.entities_per_image:.2f}"),
        ("Questions per picture (mean)", f"{found.questions_per_image:.2f}"),
        ("Publication dates", days),
        ("Mask area (median)", median),
        ("Rows made smaller to fit", str(found.shrunk)),
    ]


def _counts(found: Statistics) -> list[tuple[str, str, int]]:
    groups = [
        ("Domain", found.domains),
        ("Entity type", found.entity_types),
        ("Question kind", found.kinds),
        *((f"Novelty for {model}", found.novelty[model]) for model in sorted(found.novelty)),
        ("Publisher", found.publishers),
        ("Kind of source", found.source_types),
        ("Question writer", found.writers),
    ]
    out = []
    for label, counter in groups:
        ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        out += [(_cell(label), _cell(value), count) for value, count in ordered[:TOP]]
        if len(ordered) > TOP:
            out.append((_cell(label), f"{len(ordered) - TOP} others", sum(count for _, count in ordered[TOP:])))
    return out


def _losses(rejected: Mapping[str, int]) -> str:
    return ", ".join(f"{code} {count}" for code, count in sorted(rejected.items())) or "-"


def _cell(value: object) -> str:
    """A value inside a Markdown table: one line, nothing that ends a cell or opens HTML."""
    text = " ".join(str(value).split())
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
