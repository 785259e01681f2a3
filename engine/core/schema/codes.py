"""Why an item was left out: one closed list for all stages, so that the funnel is only counting.

The value is what stands in files and reports. A code is never renamed once a snapshot was published
with it; a new reason gets a new code.
"""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """The stages of the graph, in order."""

    COLLECT = "collect"
    ASK = "ask"
    ANNOTATE = "annotate"
    SNAPSHOT = "snapshot"
    PREDICT = "predict"


class Code(StrEnum):
    """Reason codes of `Rejected`."""

    # collect: a source
    SOURCE_UNREACHABLE = "source_unreachable"
    SOURCE_NOT_A_FEED = "source_not_a_feed"
    SOURCE_BAD_QUERY = "source_bad_query"
    SOURCE_RATE_LIMITED = "source_rate_limited"
    LINK_UNRESOLVED = "link_unresolved"
    # collect: fetching
    FETCH_FAILED = "fetch_failed"
    FETCH_FORBIDDEN = "fetch_forbidden"
    FETCH_GONE = "fetch_gone"
    FETCH_TIMEOUT = "fetch_timeout"
    FETCH_TOO_LARGE = "fetch_too_large"
    FETCH_REDIRECTS = "fetch_redirects"
    FETCH_PRIVATE_ADDRESS = "fetch_private_address"
    FETCH_WRONG_TYPE = "fetch_wrong_type"
    FETCH_RATE_LIMITED = "fetch_rate_limited"
    FETCH_SERVER_ERROR = "fetch_server_error"
    FETCH_BAD_URL = "fetch_bad_url"
    FETCH_TRUNCATED = "fetch_truncated"
    FETCH_TLS = "fetch_tls"
    ROBOTS_DISALLOWED = "robots_disallowed"
    AI_OPT_OUT = "ai_opt_out"
    # collect: the page
    NO_TEXT = "no_text"
    NO_TITLE = "no_title"
    PAYWALL = "paywall"
    CONSENT_PAGE = "consent_page"
    SECTION_FRONT = "section_front"
    LIVE_BLOG = "live_blog"
    NO_DATE = "no_date"
    DATE_WEAK = "date_weak"
    DATE_CONFLICT = "date_conflict"
    OUTSIDE_WINDOW = "outside_window"
    DUPLICATE_URL = "duplicate_url"
    DUPLICATE_STORY = "duplicate_story"
    # collect: the images
    NO_IMAGE = "no_image"
    NO_CAPTION = "no_caption"
    IMAGE_BROKEN = "image_broken"
    IMAGE_TRUNCATED = "image_truncated"
    IMAGE_NOT_AN_IMAGE = "image_not_an_image"
    IMAGE_TOO_SMALL = "image_too_small"
    IMAGE_TOO_LARGE = "image_too_large"
    IMAGE_BANNER = "image_banner"
    IMAGE_FLAT = "image_flat"
    IMAGE_LOGO = "image_logo"
    IMAGE_ANIMATED = "image_animated"
    IMAGE_DUPLICATE = "image_duplicate"
    IMAGE_ARCHIVE = "image_archive"
    # ask: the writer's reply
    NO_ENTITY = "no_entity"
    NO_FACT = "no_fact"
    REPLY_REFUSED = "reply_refused"
    REPLY_TRUNCATED = "reply_truncated"
    REPLY_FILTERED = "reply_filtered"
    REPLY_EMPTY = "reply_empty"
    REPLY_INVALID = "reply_invalid"
    REPLY_ERROR = "reply_error"
    # ask: the checks
    ANSWER_NOT_IN_SOURCE = "answer_not_in_source"
    EVIDENCE_NOT_IN_SOURCE = "evidence_not_in_source"
    ANSWER_IN_QUESTION = "answer_in_question"
    ANSWER_READABLE_IN_IMAGE = "answer_readable_in_image"
    ANSWER_GENERIC = "answer_generic"
    QUESTION_MALFORMED = "question_malformed"
    QUESTION_DUPLICATE = "question_duplicate"
    QUESTION_AMBIGUOUS = "question_ambiguous"
    QUESTION_UNANSWERABLE = "question_unanswerable"
    KNOWN_BLIND = "known_blind"
    ENTITY_NOT_PICTURED = "entity_not_pictured"
    PRIVATE_PERSON = "private_person"
    MINOR = "minor"
    OPTED_OUT = "opted_out"
    # annotate
    NO_CANDIDATE = "no_candidate"
    UNBOUND = "unbound"
    BINDING_TIE = "binding_tie"
    BINDING_DISAGREES = "binding_disagrees"
    MASK_EMPTY = "mask_empty"
    MASK_UNSTABLE = "mask_unstable"
    MASK_LOW_QUALITY = "mask_low_quality"
    MASK_TOO_SMALL = "mask_too_small"
    MASK_TOO_LARGE = "mask_too_large"
    MASK_FRAGMENTED = "mask_fragmented"
    MASK_OVERLAPS = "mask_overlaps"
    MASK_CROPPED = "mask_cropped"
    MASK_NO_FACE = "mask_no_face"
    PROMPTS_DISAGREE = "prompts_disagree"
    OUT_OF_MEMORY = "out_of_memory"
    # snapshot
    ROW_TOO_LARGE = "row_too_large"
    TAKEN_DOWN = "taken_down"
    REVIEWED_WRONG = "reviewed_wrong"
    # any stage
    LIMIT = "limit"
    INTERNAL = "internal"
