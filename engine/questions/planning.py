"""Going through the ask stage without spending: which requests lack, for a dry run's estimate or for batches.

The deps' models are `engine.llm.plan.PlanningChat`s; what they note is what the stage would ask next. Requests that
depend on replies not there yet (a blind model's, a second try) come up in a later round.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.config import AskSection
from engine.core.schema import Article
from engine.llm.plan import Deferred
from engine.questions.ask import AskDeps, ask_article
from engine.questions.index import NewsIndex


async def plan(articles: Sequence[Article], config: AskSection, *, deps: AskDeps) -> int:
    """How many articles lack a reply; the planning chats of `deps` hold the requests afterwards."""
    index = deps.index or NewsIndex(articles)
    lacking = 0
    for article in articles:
        try:
            await ask_article(article, config, deps=deps, index=index)
        except Deferred:
            lacking += 1
    return lacking
