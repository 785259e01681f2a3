"""What a poor yield most likely comes from, as sentences with what to do: read from the funnel and the settings."""

from __future__ import annotations

from collections.abc import Sequence

from engine.core.config import Config
from engine.core.schema import Code, FunnelStep

#: Share of what a stage found from which one reason is worth a sentence.
LARGE_SHARE = 0.3


def hints(config: Config, steps: Sequence[FunnelStep]) -> list[str]:
    """A sentence for each reason that took a good part of what a stage found and that a setting can mend."""
    known = _words(config)
    found = []
    for step in steps:
        # what a pilot leaves for later is no loss
        looked_at = step.kept + sum(number for code, number in step.rejected.items() if code != Code.LIMIT)
        found += [
            f"{number} of {looked_at} {code}: {known[code]}"
            for code, number in sorted(step.rejected.items())
            if code in known and number >= LARGE_SHARE * looked_at
        ]
    return found


def _words(config: Config) -> dict[str, str]:
    words: dict[str, str] = {
        Code.OUTSIDE_WINDOW: (
            "most of what the sources show is of another time. Feeds show only their newest: name a later --window, "
            "schedule 'nest harvest', or add an archive ('nest sources check' says how far back each one goes)"
        ),
    }
    if not config.ask.encyclopedia:
        words[Code.PRIVATE_PERSON] = (
            "a person counts as public where two publishers state a role; with few articles set [ask] encyclopedia = "
            '["wikipedia"]'
        )
    if config.ask.writer == "template":
        words[Code.NO_FACT] = 'the template writer takes only plain sentences about who is shown; writer = "llm" more'
    if config.annotate.detector == "portable":
        words[Code.NO_CANDIDATE] = (
            "the portable detector finds photographed faces and few kinds of things; groundingdino finds more"
        )
    return words
