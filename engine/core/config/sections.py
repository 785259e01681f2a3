"""The sections of `nest.toml`. Every field says in its description what it does, with unit and default.

Sections that change a stage's result are part of that stage's key; `NOT_IN_KEY` of a section names the fields
that don't (concurrency, paths, endpoints' addresses).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused."""

    NOT_IN_KEY: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def keyed(self) -> dict[str, Any]:
        """The part of the section that changes results, as plain JSON values."""
        return self.model_dump(mode="json", exclude=set(self.NOT_IN_KEY))


#: US dollars: a negative or an endless price would make every limit meaningless.
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class WindowSection(Section):
    """Which window a refresh without `--window` takes."""

    lag_days: int = Field(default=2, ge=0, le=60)
    """Days to wait after a window's end for late articles."""


class SourceSection(Section):
    """One `[[source]]` row: where links come from. What else a type needs is in `options`."""

    name: str = Field(min_length=1)
    """A short unique name, shown in funnels."""
    type: str = "feed"
    """feed, sitemap, google_news, gdelt, archive, or a type of a plugin."""
    url: str = ""
    """Address of the feed, the sitemap or the archive."""
    publisher: str = ""
    """The publisher's name, if the pages do not say it."""
    language: str = ""
    """BCP 47 language of the source, e.g. en."""
    section: str = ""
    """Section of the source, used to decide the domain."""
    credible_feed_date: bool = True
    """Whether the feed's own dates may count as a witness."""
    paused: bool = False
    """Leave the source out for now."""
    options: dict[str, Any] = {}
    """What the source's type needs beside that; see its documentation."""


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
    prices: dict[str, tuple[Price, Price]] = {}
    """US dollars per million tokens, in and out, by model id; a limit in money needs the model's price."""
    call_prices: dict[str, Price] = {}
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


class AnnotateSection(Section):
    """Detector, mask model, binding and gates."""

    # what concerns faces goes into the stage's key where they are compared, and only there
    NOT_IN_KEY = frozenset(
        {"device", "batch_images", "shard_images", "weights_dir", "faces", "face_weights", "face_sha256"}
    )

    detector: str = "groundingdino"
    """groundingdino, hf-groundingdino, portable."""
    mask_model: str = "sam"
    """sam, hf-sam, hf-sam2, hf-sam3, portable."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:0 ..."""
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    """Number type of the models on a GPU."""
    weights_dir: Path | None = None
    """Folder with weight files; None means <home>/weights."""
    detector_config: str = "swin_t"
    """swin_t or swin_b, or the path of a config file."""
    detector_weights: str = ""
    """Path, or owner/name@revision:file on the Hub; empty means the published checkpoint's pinned place."""
    text_encoder: str = "bert-base-uncased"
    """Path or Hub name of Grounding DINO's text encoder."""
    mask_config: str = "vit_h"
    """vit_b, vit_l or vit_h."""
    mask_weights: str = ""
    """Path, or owner/name@revision:file on the Hub."""
    embedder: str = "auto"
    """auto, clip, portable, none: what compares crops with reference pictures; auto means none without references, the
    portable one beside the portable detector, else clip."""
    embedder_weights: str = ""
    """Folder of a CLIP model, or owner/name@revision on the Hub; empty means clip-vit-base-patch32 in weights_dir."""
    box_threshold: float = Field(default=0.35, ge=0, le=1)
    """Least score of a candidate box (Grounded-SAM's default)."""
    text_threshold: float = Field(default=0.25, ge=0, le=1)
    """Least score of a token to belong to a phrase (Grounded-SAM's default)."""
    nms_iou: float = Field(default=0.6, ge=0, le=1)
    """Boxes of one phrase that overlap more are one object."""
    min_margin: float = Field(default=0.1, ge=0, le=1)
    """Least lead of the chosen candidate over the next."""
    references: Path | None = None
    """Folder of reference pictures, one sub-folder per entity with pictures and a names.json."""
    faces: bool = False
    """Compare faces with those of reference pictures. Face vectors are biometric data: read docs/ethics.md first."""
    face_weights: str = ""
    """File of a face network for OpenCV's FaceRecognizerSF (SFace in ONNX), absolute or in weights_dir; none comes with
    the package."""
    face_sha256: str = ""
    """sha256 that this file must have; empty takes any."""
    marks: bool = False
    """Show the candidates as numbered marks to the vision model of [llm], as one more kind of evidence."""
    min_mask_score: float = Field(default=0.5, ge=0, le=1)
    """Gate: least predicted quality of a mask."""
    min_stability: float = Field(default=0.7, ge=0, le=1)
    """Gate: least stability of a mask under a shifted threshold."""
    min_area_share: float = Field(default=0.002, ge=0, le=1)
    """Gate: least share of the image."""
    max_area_share: float = Field(default=0.9, ge=0, le=1)
    """Gate: largest share of the image."""
    min_box_fill: float = Field(default=0.2, ge=0, le=1)
    """Gate: least share of its box that a mask fills."""
    max_parts_loss: float = Field(default=0.2, ge=0, le=1)
    """Gate: largest share of a mask outside its largest connected part."""
    max_overlap: float = Field(default=0.3, ge=0, le=1)
    """Gate: largest share of a mask that lies in another entity's mask."""
    max_border_share: float = Field(default=0.6, ge=0, le=1)
    """Gate: largest share of the image's border that a mask may run along on one side."""
    second_prompt: bool = False
    """Look again with the bare noun of the entity's type; boxes that then are not found are rejected."""
    min_prompt_iou: float = Field(default=0.7, ge=0, le=1)
    """Gate: least overlap of the bound box with the second prompt's."""
    min_face_share: float = Field(default=0.6, ge=0, le=1)
    """Gate: least share of a person's face (its box) that their mask covers, where a face is found."""
    batch_images: int = Field(default=4, ge=1)
    """Images per forward pass."""
    shard_images: int = Field(default=64, ge=1)
    """Images per committed shard."""


class CollectSection(Section):
    """Fetching, reading and filtering news."""

    NOT_IN_KEY = frozenset(
        {
            "max_connections",
            "per_host",
            "per_host_delay_s",
            "timeout_s",
            "retries",
            "max_retry_after_s",
            "user_agent",
            "resolve",
            "allow_hosts",
        }
    )

    user_agent: str = "nest-data-engine/0.1 (+research benchmark; set [collect] user_agent to your contact)"
    """Honest agent string; put a contact address in."""
    max_connections: int = Field(default=32, ge=1)
    """Connections at a time."""
    per_host: int = Field(default=2, ge=1)
    """Connections at a time to one host."""
    per_host_delay_s: float = Field(default=1.0, ge=0)
    """Seconds between two requests to one host; a longer crawl-delay in robots.txt wins."""
    timeout_s: float = Field(default=30.0, gt=0)
    """Seconds for one whole request."""
    retries: int = Field(default=3, ge=0)
    """Further tries after a failure that may pass."""
    max_retry_after_s: float = Field(default=60.0, ge=0)
    """Longest wait a server may ask for (Retry-After) before its page is given up for this run."""
    resolve: dict[str, str] = {}
    """Addresses for host names ("herald.example" = "127.0.0.1:8080"), as curl's --resolve; such a host must also
    stand in allow_hosts if the address is private."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts (name or name:port) that may lie at private or loopback addresses."""
    obey_robots: bool = True
    """Follow robots.txt."""
    obey_ai_opt_out: bool = True
    """Follow the signs by which publishers decline use for AI."""
    min_image_side_px: int = Field(default=200, ge=16)
    """Smallest width and height of an image."""
    min_text_chars: int = Field(default=250, ge=0)
    """Shortest article text."""
    max_images_per_article: int = Field(default=6, ge=1)
    """Most images kept from one article."""
    require_caption: bool = True
    """Leave out images of which nothing is said."""
    near_duplicate_bits: int = Field(default=6, ge=0, le=32)
    """Images whose 64-bit perceptual hashes differ in at most so many bits are one photo."""
    limit: int | None = Field(default=None, ge=1)
    """Most articles of a run; for pilots."""


class SnapshotSection(Section):
    """What the published folder holds."""

    publish: Literal["bytes", "urls"] = "bytes"
    """bytes: images in the rows; urls: no pixels, for `nest rehydrate`."""
    license: str = "cc-by-nc-4.0"
    """Licence tag of the card: of the annotations; images stay their owners'."""
    language: tuple[str, ...] = ("en",)
    """Languages of the card."""
    contact: str = ""
    """Where a removal is asked for; needed to push."""
    jpeg_quality: int = Field(default=92, ge=50, le=100)
    """Quality of images that have to be re-encoded."""
    max_row_bytes: int = Field(default=2_000_000, ge=10_000)
    """Rows above are shrunk by rule."""
    max_shard_bytes: int = Field(default=500_000_000, ge=1_000_000)
    """Largest Parquet file."""
    row_group_bytes: int = Field(default=100_000_000, ge=100_000)
    """Largest row group, in real bytes."""


class HubSection(Section):
    """Where snapshots are pushed (token: `HF_TOKEN`). Nothing is pushed without `repo`."""

    repo: str = ""
    """owner/{name}: {name} stands for the snapshot's name; empty means no push."""
    private: bool = False
    """Create the repository private."""
    hold: bool = False
    """Push privately, until somebody looked at the rows and says `nest release W`."""
    sealed: int = Field(default=0, ge=0, le=52)
    """Weeks after a window's end for which only pictures, questions and a hash of the answers are public; 0: none."""


class ScoreSection(Section):
    """Segmenters that are run over a snapshot, and how they are scored."""

    NOT_IN_KEY = frozenset(
        {"anchors", "retired", "device", "shard_samples", "max_in_flight", "weights", "endpoints", "offline"}
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
    cutoffs: dict[str, str] = {}
    """Last day (YYYY-MM-DD) that a segmenter's models know of, by its name: a line in the leaderboard."""
    retired: dict[str, str] = {}
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
    weights: dict[str, str] = {}
    """Folder of a segmenter's weights, by its name; without one it is <weights_dir>/<name>."""
    endpoints: dict[str, str] = {}
    """Address of a segmenter that is a service (seg-zero, llmseg, search-chat, remote, seem, gres, cris), by its
    name; a model without one is asked at [llm] base_url."""
    options: dict[str, dict[str, str | int | float | bool]] = {}
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
