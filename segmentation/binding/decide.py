"""The one place where evidence becomes a binding, or a reason why not.

A name is bound if one kind is certain by construction (one name, one box), or if at least two kinds speak for the
same box; "as many names as boxes" is a kind that supports whichever box a place word or a reference picks, since it
rules out strangers. Kinds that speak for different boxes, two names on one box, and leads that are too small leave
the name unbound. It never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.core.schema import Binding, BindingEvidence, Code
from segmentation.binding import evidence
from segmentation.binding.candidates import Named, Scene
from segmentation.binding.evidence import Opinion

#: A kind whose best candidate leads by less than this does not take part in the vote.
LEAST_LEAD = 0.05
#: Kinds that pick a box by themselves. `order` and `count` only support them.
PICKING = frozenset({"position", "colour", "reference", "match", "face", "marks"})

Witness = Callable[[Scene, Named], Opinion | None]


@dataclass(frozen=True, slots=True)
class Bound:
    """The entity is this candidate."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class Unbound:
    """No decision, and why: a code of `Rejected` and a sentence."""

    code: Code
    detail: str
    binding: Binding | None = None


Decision = Bound | Unbound


def bind(scene: Scene, *, witnesses: Sequence[Witness] = (), min_margin: float) -> list[Decision]:
    """One decision per name, in order. `witnesses` are further kinds of evidence (references, marks)."""
    decisions = [_decide(scene, name, witnesses, min_margin) for name in scene.names]
    return _one_name_per_box(scene, _places_in_doubt(decisions))


def _decide(scene: Scene, name: Named, witnesses: Sequence[Witness], min_margin: float) -> Decision:
    if not scene.eligible(name):
        return Unbound(Code.NO_CANDIDATE, f"no box was found for '{name.entity.phrase}'")
    own: tuple[Witness, ...] = (evidence.position, evidence.colour, evidence.order)
    asked = [opinion for witness in (*own, *witnesses) if (opinion := witness(scene, name)) is not None]
    voting = [opinion for opinion in asked if opinion.lead >= LEAST_LEAD]
    certain = evidence.sole(scene, name)
    if certain is not None:
        asked.append(certain)
    told = _evidence(asked)
    picks = {opinion.choice for opinion in voting if opinion.kind in PICKING}
    if certain is not None:
        picks.add(certain.choice)
    if len(picks) > 1:
        said = ", ".join(f"{opinion.kind} says box {opinion.choice}" for opinion in voting)
        return Unbound(
            Code.BINDING_DISAGREES, said, Binding(candidate=-1, rule="disagreement", margin=0, evidence=told)
        )
    if not picks:
        return _no_pick(scene, name, asked, told)
    chosen = picks.pop()
    agreeing = [opinion for opinion in voting if opinion.choice == chosen]
    against = [opinion for opinion in voting if opinion.choice != chosen]  # only `order` is left here
    kinds = [opinion.kind for opinion in agreeing]
    if evidence.count(scene):
        kinds.append("count")
    if certain is not None:
        rule, margin = "sole", certain.lead
    elif len(kinds) >= 2:
        rule = "+".join(sorted(kinds))
        picked = [opinion.lead for opinion in agreeing if opinion.kind in PICKING]
        margin = sum(picked) / len(picked)
        # half as sure against the habitual order, and where there are references that do not confirm the place
        if against or (name.references and kinds == ["position", "count"]):
            margin *= 0.5
    else:
        return Unbound(
            Code.UNBOUND,
            f"only {kinds[0]} speaks for box {chosen} of {len(scene.eligible(name))}, a second kind is needed",
            Binding(candidate=chosen, rule="alone", margin=0, evidence=told),
        )
    binding = Binding(candidate=chosen, rule=rule, margin=round(margin, 4), evidence=told)
    if margin < min_margin:
        return Unbound(Code.BINDING_TIE, f"the lead of box {chosen} is {margin:.3f}, asked are {min_margin}", binding)
    return Bound(binding)


def _no_pick(scene: Scene, name: Named, asked: Sequence[Opinion], told: tuple[BindingEvidence, ...]) -> Unbound:
    binding = Binding(candidate=-1, rule="none", margin=0, evidence=told)
    if any(opinion.kind in PICKING for opinion in asked):
        kinds = ", ".join(opinion.kind for opinion in asked if opinion.kind in PICKING)
        return Unbound(Code.BINDING_TIE, f"{kinds} cannot tell the boxes apart", binding)
    return Unbound(
        Code.UNBOUND,
        f"{len(scene.eligible(name))} boxes for '{name.entity.phrase}' and nothing that tells which is "
        f"{name.entity.name}",
        binding,
    )


def _places_in_doubt(decisions: Sequence[Decision]) -> list[Decision]:
    """Where the places contradict other evidence for one name, they are no evidence for the others either: somebody
    is missing and a stranger stands in the row."""
    if not any(isinstance(item, Unbound) and item.code is Code.BINDING_DISAGREES for item in decisions):
        return list(decisions)
    result: list[Decision] = []
    for item in decisions:
        if isinstance(item, Bound) and item.binding.rule == "count+position":
            why = "the places of the caption do not fit another name of the picture"
            result.append(Unbound(Code.UNBOUND, why, item.binding))
        else:
            result.append(item)
    return result


def _one_name_per_box(scene: Scene, decisions: Sequence[Decision]) -> list[Decision]:
    """Two names on one box (or on boxes that are nearly the same) are both given up."""
    bound = {index: item.binding for index, item in enumerate(decisions) if isinstance(item, Bound)}
    result = list(decisions)
    for index, binding in bound.items():
        box = scene.candidates[binding.candidate].box
        for other, theirs in bound.items():
            if other == index:
                continue
            if theirs.candidate == binding.candidate or scene.candidates[theirs.candidate].box.iou(box) > 0.7:
                rival = scene.names[other].entity.name
                result[index] = Unbound(Code.BINDING_TIE, f"box {binding.candidate} is claimed by {rival} too", binding)
    return result


def _evidence(opinions: Sequence[Opinion]) -> tuple[BindingEvidence, ...]:
    return tuple(
        BindingEvidence(kind=opinion.kind, candidate=index, score=round(score, 4), detail=opinion.detail)
        for opinion in opinions
        for index, score in sorted(opinion.scores.items())
    )
