"""What segmenters work with: searches, chat models and an embedder of a configuration, each opened only where the name
asks for it.

With `[score] offline` none of them is asked: searches, replies and vectors come from what is recorded in the home, and
no key is needed. What is not recorded is then an error, never an empty answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from flows.run import Run, weights_of
from flows.wiring import openai_key, searches

if TYPE_CHECKING:
    from engine.core.config import Config, LlmSection
    from engine.core.protocols import ChatModel, TextEmbedder
    from engine.core.store import Home
    from engine.llm.ledger import Ledger
    from inference.segmenters.deps import InferenceDeps

#: Segmenters that ask a vision model of their own.
SEEING = ("seg-zero", "llmseg")
#: Segmenters after whose colon stands no other segmenter.
TAKES_ANYTHING = ("files", "remote")


def retrieves(name: str) -> bool:
    """Whether a segmenter may search: ROSE and its ablations, and plugins, whose needs nobody knows."""
    from inference.rose.ablation import VARIANTS

    return name.split(":")[0] in VARIANTS or _plugin(name) is not None


@asynccontextmanager
async def inference_deps(config: Config, home: Home, run: Run | None, *, name: str) -> AsyncIterator[InferenceDeps]:
    """What the segmenter `name` may use: the searches of `[rose] search`, chat models, the weights' folder."""
    from engine.llm.ledger import Ledger
    from inference.segmenters.deps import InferenceDeps

    heads, plugin = name.split(":"), _plugin(name)
    searching = retrieves(name)
    ledger = Ledger.of(config.llm, home.root / "ledger")
    async with AsyncExitStack() as stack:
        search = await searches(config, home, run, stack, ledger=ledger) if searching else None
        chat = await _chat(config, config.llm, home, stack, ledger) if searching else None
        own = next((head for head in heads if head in SEEING), plugin)
        yield InferenceDeps(
            search=search.search if search else None,
            image_entities=search.entities if search else None,
            chat=chat,
            seeing_chat=chat if config.llm.sees_images else None,
            text_embedder=await _embedder(config, home, stack, ledger) if searching else None,
            search_chat=await _named(config, "search-chat", home, stack, ledger) if "search-chat" in heads else None,
            vision_chat=await _named(config, own, home, stack, ledger) if own else None,
            weights_dir=weights_of(config, home),
            records=home.cache("segmenters"),
        )


def _plugin(name: str) -> str | None:
    """What of a name is no built-in segmenter. What a plugin needs is not known before it is made: it gets everything
    that is there."""
    from inference.segmenters.registry import BUILT_IN

    heads = name.split(":")
    return None if heads[0] in TAKES_ANYTHING else next((head for head in heads[:2] if head not in BUILT_IN), None)


async def _named(config: Config, name: str, home: Home, stack: AsyncExitStack, ledger: Ledger) -> ChatModel | None:
    """The chat model of a segmenter: `[score] options.<name>.model` at `endpoints.<name>`, both by default those of
    `[llm]`. A baseline that searches has to name its model: the ordinary one does not search."""
    told = str(config.score.options.get(name, {}).get("model", ""))
    if not told and (name == "search-chat" or not config.llm.sees_images):
        return None
    update: dict[str, object] = {"sees_images": name != "search-chat"}
    if told:
        update["model"] = told
    if name in config.score.endpoints:
        update["base_url"] = config.score.endpoints[name]
    return await _chat(config, config.llm.model_copy(update=update), home, stack, ledger)


async def _chat(
    config: Config, section: LlmSection, home: Home, stack: AsyncExitStack, ledger: Ledger
) -> ChatModel | None:
    """The chat model of a section; None where none is named or there is no key."""
    from engine.llm.client import OpenAIChat
    from engine.llm.offline import RecordedChat

    if not section.model:
        return None
    if config.score.offline:
        return await stack.enter_async_context(RecordedChat(section, cache=home.cache("llm")))
    key = openai_key()
    if not key:
        return None
    return await stack.enter_async_context(OpenAIChat(section, api_key=key, cache=home.cache("llm"), ledger=ledger))


async def _embedder(config: Config, home: Home, stack: AsyncExitStack, ledger: Ledger) -> TextEmbedder | None:
    from engine.llm.embeddings import OpenAIEmbedder

    rose = config.rose
    if rose.embedder != "openai" or not (openai_key() or config.score.offline):
        return None
    return await stack.enter_async_context(
        OpenAIEmbedder(
            config.llm,
            model=rose.embed_model,
            api_key=openai_key(),
            cache=home.cache("llm"),
            ledger=ledger,
            base_url=rose.embed_url,
            offline=config.score.offline,
        )
    )
