"""Wiring ROSE around the segmenter that a name asks for."""

from __future__ import annotations

from engine.core.config import Config, RoseSection
from engine.core.errors import ConfigError
from engine.web.search.vision import ImageEntities
from inference.rose.answer import ExtractReader, Reader
from inference.rose.irag import Irag
from inference.rose.rank import ChunkRanker, PortableTextEmbedder, VectorRanker, WordRanker
from inference.rose.read_llm import LlmReader
from inference.rose.rose import Rose
from inference.rose.seen import ChatEntities
from inference.rose.vpe import Vpe
from inference.rose.websense import WebSense
from inference.segmenters.builtin import detector_of, embedder_of, mask_model_of
from inference.segmenters.deps import InferenceDeps
from inference.segmenters.keys import real_parts
from inference.segmenters.phrases import nouns_of
from inference.segmenters.registry import build


def make_rose(inner: str, config: Config, *, deps: InferenceDeps, name: str = "") -> Rose:
    """ROSE around the segmenter `inner`, with the modules that `[rose]` switches on.

    Raises `ConfigError` if a module lacks what it needs, or `inner` takes whole samples.
    """
    section = config.rose
    built = build(inner, config, deps=deps)
    if built.segmenter is None:
        raise ConfigError(f"'rose:{inner}': ROSE wraps a segmenter that takes a prompt, '{inner}' takes whole samples")
    reader_is_model = section.answerer == "llm"
    if section.irag and deps.search is None:
        raise ConfigError(
            f"'rose:{inner}' retrieves and no search is there: the local index is that of a window's own news; for "
            'other data set [rose] search to services, e.g. ["wikipedia"], or [rose] irag = false'
        )
    if section.irag and reader_is_model and deps.chat is None:
        raise ConfigError(
            f"'rose:{inner}' reads pages with a chat model and none is there: set [llm] model and OPENAI_API_KEY, or "
            '[rose] answerer = "extract"'
        )
    irag = None
    if section.irag and deps.search is not None:
        reader: Reader = LlmReader(deps.chat) if reader_is_model and deps.chat is not None else ExtractReader()
        irag = Irag(
            deps.search,
            reader,
            section,
            chat=deps.chat if reader_is_model else None,
            entities=_entities(inner, section, deps),
            ranker=_ranker(inner, section, deps),
        )
    vpe = None
    if section.vpe:
        parts = built.annotate if built.annotate is not None else real_parts(config.annotate)
        vpe = Vpe(
            detector_of(parts, config, deps),
            mask_model_of(parts, config, deps),
            embedder_of(parts, config, deps),
            section,
        )
    return Rose(
        built.segmenter,
        section,
        wording=built.wording,
        websense=WebSense(deps.chat if reader_is_model else None),
        irag=irag,
        vpe=vpe,
        vpe_phrases=built.vpe_phrases if built.vpe_phrases is not None else nouns_of,
        max_in_flight=config.score.max_in_flight,
        batch=section.batch,
        name=name or f"rose:{inner}",
    )


def _ranker(inner: str, section: RoseSection, deps: InferenceDeps) -> ChunkRanker:
    if section.embedder == "words":
        return WordRanker()
    if section.embedder == "portable":
        return VectorRanker(PortableTextEmbedder())
    if deps.text_embedder is None:
        raise ConfigError(
            f"'rose:{inner}' embeds chunks with a model and none is there: set [rose] embed_model and OPENAI_API_KEY, "
            'or [rose] embedder = "portable"'
        )
    return VectorRanker(deps.text_embedder)


def _entities(inner: str, section: RoseSection, deps: InferenceDeps) -> ImageEntities | None:
    if section.image_entities != "vision-model":
        return deps.image_entities
    if deps.seeing_chat is None:
        raise ConfigError(
            f"'rose:{inner}' asks a model what images show and none is there: set [llm] model, sees_images = true and "
            'OPENAI_API_KEY, or [rose] image_entities = "none"'
        )
    return ChatEntities(deps.seeing_chat)
