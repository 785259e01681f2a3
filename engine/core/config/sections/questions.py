"""Sections about writing and checking questions: the model that is asked, its prices and limits, and the checks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from engine.core.config.sections.base import Section

#: US dollars: a negative or an endless price would make every limit meaningless.
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class LlmSection(Section):
    """The model endpoint for writing and checking questions (key: `OPENAI_API_KEY`)."""

    NOT_IN_KEY = frozenset(
        {
            "base_url",
            "max_in_flight",
            "timeout_s",
            "max_usd",
            "max_tokens",
            "prices",
            "call_prices",
            "monthly_usd",
            "max_wait_s",
            "patience_s",
            "backoff_s",
        }
    )

    base_url: str = ""
    """Address of an OpenAI-compatible endpoint; empty means `OPENAI_BASE_URL` or OpenAI's own."""
    model: str = ""
    """Pinned model id, e.g. gpt-4.1-mini-2025-04-14."""
    api: Literal["chat", "responses"] = "chat"
    """Which endpoint of the API to use."""
    structured: Literal["auto", "json_schema", "json_object", "plain"] = "auto"
    """How to ask for JSON; auto tries the strictest first and remembers what the server takes."""
    sees_images: bool = False
    """Whether the model takes images."""
    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    """Sampling temperature."""
    seed: int | None = 0
    """Sampling seed sent to servers that take one; none leaves it out."""
    max_in_flight: int = Field(default=8, ge=1, le=1024)
    """Requests at a time."""
    timeout_s: float = Field(default=120.0, gt=0)
    """Seconds until a request counts as failed."""
    max_wait_s: float = Field(default=600.0, ge=0)
    """Longest wait a server may ask for in one go before the stage stops with work left."""
    patience_s: float = Field(default=900.0, ge=0)
    """Seconds of waiting and trying again that one request is worth before the stage stops with work left."""
    backoff_s: float = Field(default=1.0, ge=0.3, le=60)
    """First wait after a failure for which the server names no time; doubled each time, at most 60."""
    max_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Money limit of one run in US dollars."""
    max_tokens: int | None = Field(default=None, gt=0)
    """Token limit of one run, in and out together."""
    monthly_usd: float | None = Field(default=None, gt=0)
    """Money limit of one calendar month (UTC) over LLM, vision and search calls."""
    prices: dict[str, tuple[Price, Price]] = Field(default={})
    """US dollars per million tokens, in and out, by model id; a limit in money needs the model's price."""
    call_prices: dict[str, Price] = Field(default={})
    """US dollars per call of paid services (brave, google, google-vision); a limit in money needs the price of each
    that is used."""


class AskSection(Section):
    """How questions are written and checked."""

    NOT_IN_KEY = frozenset({"batch_articles", "batch"})

    writer: str = "llm"
    """llm, template, or the name of a plugin."""
    recogniser: str = ""
    """Recogniser of names beside the caption patterns, for the template writer: spacy:<pipeline> (extra [ner]), e.g.
    spacy:en_core_web_sm, or a plugin's name; empty uses the patterns alone."""
    prompt: str = "write_v1"
    """Versioned prompt file under engine/questions/prompts."""
    max_questions_per_image: int = Field(default=2, ge=1, le=10)
    """Most questions kept for one image; about 1.6 on average is the published set's figure."""
    reply_tokens: int = Field(default=1200, ge=50)
    """Token limit of a writer's reply; doubled twice if the reply is cut."""
    entity_types: tuple[Literal["person", "product"], ...] = ("person", "product")
    """Which entities are asked for."""
    public_figures: Literal["require", "off"] = "require"
    """Whether a person must be shown to be a public figure."""
    encyclopedia: tuple[Literal["wikipedia", "searxng", "brave", "google"], ...] = ()
    """Search providers (see [rose]) that are asked for an encyclopedia's entry where
    the window's own news do not show a person to be public; empty asks nobody."""
    opt_out: tuple[str, ...] = ()
    """Names that are never asked for."""
    blind_model: str = ""
    """Pinned id of a model at the [llm] endpoint that answers each question without the news; empty means none."""
    blind_sees_images: bool = False
    """Whether that model takes images: then it is asked with the picture as well."""
    reject_known: bool = True
    """Drop what the blind model answers with neither news nor picture; otherwise it is only recorded."""
    read_images: bool = False
    """Have the [llm] model (sees_images) read the lettering in each picture, and drop answers that stand there."""
    batch: bool = False
    """Send what lacks to the endpoint's Batch API (half the price, up to a day) and stop with exit code 3 until it is
    there; meant for backfills."""
    batch_articles: int = Field(default=256, ge=1)
    """Articles per committed shard. Replies are kept one by one, so a larger shard loses nothing that was paid; a
    small one leaves the model idle at its end."""
