"""Sections about evaluation: which segmenters are scored and how, and what ROSE does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from engine.core.config.sections.base import Section


class ScoreSection(Section):
    """Segmenters that are run over a snapshot, and how they are scored."""

    NOT_IN_KEY = frozenset(
        {
            "anchors",
            "retired",
            "device",
            "shard_samples",
            "max_in_flight",
            "weights",
            "endpoints",
            "offline",
            # in a report's key where one is named: to name none must leave the keys of older reports as they are
            "judge_model",
        }
    )

    segmenters: tuple[str, ...] = ("grounded-sam", "rose:grounded-sam")
    """Names, see `nest segmenters`."""
    device: str = "auto"
    """auto, cpu, cuda ..."""
    convention: Literal["lisa", "gres"] = "lisa"
    """Convention of the headline figures."""
    anchors: tuple[str, ...] = ()
    """Frozen segmenters that score every window: trends are differences to them, `nest status` shows them first."""
    novelty_model: str = ""
    """Model whose labels (`nest novelty`) tell novel from emerging; "" for those that the snapshot brings."""
    judge_model: str = ""
    """Pinned id of a model at the [llm] endpoint that says of answers that match no alias whether they name the entity;
    a figure of its own beside the exact one. Empty asks nobody."""
    cutoffs: dict[str, str] = Field(default={})
    """Last day (YYYY-MM-DD) that a segmenter's models know of, by its name: a line in the leaderboard."""
    retired: dict[str, str] = Field(default={})
    """Segmenters that score no more, with the reason: they stay in the leaderboard, their blanks explained."""
    known_truth: Literal["", "sample"] = ""
    """Masks known from elsewhere to score against as well: sample for the bundled week."""
    cutoff_lag_days: int = Field(default=0, ge=0)
    """Days after the window's end of which retrieval may know."""
    shard_samples: int = Field(default=64, ge=1)
    """Samples per committed shard."""
    max_in_flight: int = Field(default=16, ge=1)
    """Samples whose retrieval runs at a time."""
    offline: bool = False
    """Answer from recorded searches and model replies alone: a finished evaluation is repeated, nobody is asked."""
    weights: dict[str, str] = Field(default={})
    """Folder of a segmenter's weights, by its name; without one it is <weights_dir>/<name>."""
    endpoints: dict[str, str] = Field(default={})
    """Address of a segmenter that is a service (seg-zero, llmseg, search-chat, remote, seem, gres, cris), by its
    name; a model without one is asked at [llm] base_url."""
    options: dict[str, dict[str, str | int | float | bool]] = Field(default={})
    """What else a segmenter takes, by its name, e.g. {"seg-zero": {"model": "...", "space": "resized_840"}}."""


class RoseSection(Section):
    """ROSE's modules and their thresholds; those the paper does not give are our choice, stated in their modules."""

    NOT_IN_KEY = frozenset({"batch", "searxng_url", "google_engine", "embed_url"})

    websense: bool = True
    """Ask first whether retrieval is needed."""
    irag: bool = True
    """Retrieve an answer."""
    tpe: bool = True
    """Put answer and background into the prompt."""
    vpe: bool = True
    """Check the mask against reference images."""
    search: tuple[str, ...] = ("local",)
    """Search providers in order: local, searxng, brave, google, wikipedia."""
    answerer: Literal["extract", "llm"] = "llm"
    """Who reads the pages: the chat model, or the extractive reader that needs none."""
    top_pages: int = Field(default=5, ge=1)
    """Pages read per question."""
    chunk_words: int = Field(default=150, ge=20)
    """Words per chunk."""
    top_chunks: int = Field(default=6, ge=1)
    """Chunks read per question."""
    embedder: Literal["portable", "openai", "words"] = "portable"
    """What chunks are ranked by: portable for hashed word and letter vectors, openai for `embed_model` behind an
    OpenAI-compatible /embeddings endpoint (key: `OPENAI_API_KEY`), words for the words shared with the question."""
    embed_model: str = ""
    """Pinned id of the text embedding model, for the embedder openai."""
    embed_url: str = ""
    """Address of its endpoint; empty means that of [llm]."""
    references: int = Field(default=8, ge=0)
    """Reference images per answer."""
    prompt_chars: int = Field(default=600, ge=50)
    """Longest prompt given to the segmenter."""
    low_similarity: float | None = Field(default=None, ge=-1, le=1)
    """Below this similarity to the prototype, the segmenter's region is questioned; none takes the embedder's own."""
    accept_similarity: float | None = Field(default=None, ge=-1, le=1)
    """A detector box must reach this to replace it (the paper's tau); none takes the embedder's own."""
    replace_gain: float = Field(default=0.0, ge=0, le=1)
    """A box must be more alike than the questioned region by more than this."""
    min_answer_score: float = Field(default=0.35, ge=0, le=1)
    """Least confidence of a candidate answer that is used."""
    cluster_similarity: float = Field(default=0.6, ge=-1, le=1)
    """Reference pictures (or groups of them) at least this alike fall into one cluster."""
    blocked_sites: tuple[str, ...] = ("huggingface.co/datasets", "henghuiding.com")
    """Hosts, or hosts with a path, that retrieval never reads: where the benchmark itself lies."""
    batch: int = Field(default=8, ge=1)
    """Samples per batch of the models."""
    searxng_url: str = ""
    """Address of a SearXNG instance whose formats include json, for the provider searxng."""
    google_engine: str = ""
    """Id of a Programmable Search engine, for the provider google (key: `GOOGLE_API_KEY`)."""
    image_entities: Literal["none", "google-vision", "vision-model"] = "none"
    """Who says which candidate answers an image shows: web detection (the paper's; key: `GOOGLE_API_KEY`), or the
    model of [llm] where it sees images."""
