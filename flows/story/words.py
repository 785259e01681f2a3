"""A story in words: parts with a title and labelled lines, which the terminal and the page lay out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flows.story.gather import Story


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the story: its blob, and where the mask and the boxes of an annotation lie in it."""

    sha256: str
    ext: str
    width: int
    height: int
    caption: str
    annotation: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the story. `lost` marks where something was left out."""

    title: str
    lines: tuple[tuple[str, str], ...]
    pictures: tuple[Picture, ...] = ()
    lost: bool = False
    folded: tuple[tuple[str, str], ...] = field(default=())


def parts(story: Story) -> list[Part]:
    """The story from where it was found to what became of it."""
    found: list[Part] = []
    articles = story.of("article")
    images = {image["sha256"]: image for article in articles for image in article.get("images", ())}
    found += [_link(record) for record in story.of("link")]
    found += [_article(one.record, story.made_by(one)) for one in story.chapters_of("article")]
    found += [_reply(told) for told in story.replies]
    found += [_question(one.record, story.made_by(one)) for one in story.chapters_of("question")]
    found += [_annotation(one.record, images, story.made_by(one)) for one in story.chapters_of("annotation")]
    found += [
        Part(
            f"row {row.id}",
            (("in", f"{row.snapshot} {row.revision}"), ("question", row.question), ("answer", row.answer)),
        )
        for row in story.rows
    ]
    runs = Counter(told["segmenter"] for told in story.predictions)
    found += [_prediction(told, alone=runs[told["segmenter"]] == 1) for told in story.predictions]
    found += [_verdict(told) for told in story.verdicts]
    found += [
        Part(f"changed in {told['revision']}", (("change", told["change"]), ("because", told["because"])))
        for told in story.errata
    ]
    for chapter in story.rejected:
        record = chapter.record
        lines = [
            ("item", record["item"]),
            ("of", record.get("parent", "")),
            ("source", record.get("source", "")),
            ("in", story.made_by(chapter)),
        ]
        why = f"left out in {record['stage']}: {record['code']}"
        found.append(Part(why, (("because", record["detail"]), *_filled(lines)), lost=True))
    return found


def _filled(lines: Sequence[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple((label, str(value)) for label, value in lines if value not in ("", None, [], ()))


def _witnesses(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in record.get("date_witnesses") or record.get("witnesses") or ():
        rest = [one.get("role", ""), one.get("precision", ""), one.get("note", "")]
        told = f"{one['kind']} says {one['value']}" + (f" ({', '.join(filter(None, rest))})" if any(rest) else "")
        yield "witness", told + ("" if one.get("credible", True) else ", not credible")


def _link(record: Mapping[str, Any]) -> Part:
    lines = [
        ("address", record["url"]),
        ("by", f"{record['source']} ({record['source_type']})"),
        ("first seen", record.get("first_seen")),
        ("title", record.get("title")),
    ]
    return Part("found", (*_filled(lines), *_witnesses(record)))


def _article(record: Mapping[str, Any], made_by: str) -> Part:
    certain = "certain" if record.get("date_certain") else "not certain"
    lines = [
        ("title", record["title"]),
        ("address", record.get("canonical_url") or record["url"]),
        ("publisher", record.get("publisher")),
        ("published", f"{record.get('published_at')} ({certain})"),
        ("domain", record.get("domain")),
        ("in", made_by),
    ]
    pictures = []
    for image in record.get("images", ()):
        lines.append(("picture", f"{image['url']}  {image['width']}x{image['height']}"))
        lines += [("caption", image.get("caption")), ("credit", image.get("credit")), ("rights", image.get("rights"))]
        pictures.append(_picture(image))
    text = (("text", str(record.get("text", ""))),)
    return Part(f"article {record['id']}", (*_filled(lines), *_witnesses(record)), tuple(pictures), folded=text)


def _reply(told: Mapping[str, Any]) -> Part:
    head = (("model", told["model"]), ("pictures", str(told["pictures"])), ("status", told["status"]))
    text = (("system", told["system"]), ("user", told["user"]), ("reply", told["text"]))
    return Part(f"prompt and reply ({told['purpose']})", head, folded=text)


def _question(record: Mapping[str, Any], made_by: str) -> Part:
    writer = record["writer"]
    lines = [
        ("question", record["question"]),
        ("answer", record["answer"]),
        ("aliases", ", ".join(record.get("aliases", ()))),
        ("kind", f"{record['entity_type']}, {record['kind']}"),
        ("looked for", ", ".join(filter(None, (record["phrase"], record.get("position"))))),
        ("evidence", f"{record.get('evidence', '')} ({record.get('evidence_in')})"),
        (
            "writer",
            " ".join(filter(None, (writer["name"], writer["version"], writer.get("model"), writer.get("prompt")))),
        ),
        ("in", made_by),
    ]
    checks = [
        (
            "check",
            f"{'passed' if one['passed'] else 'failed'} {one['name']}"
            + (f": {one['detail']}" if one["detail"] else ""),
        )
        for one in record.get("checks", ())
    ]
    blind = [
        ("blind", f"{one['model']} said {one['answer']!r}, which {'is it' if one['matches'] else 'is not it'}")
        for one in record.get("blind", ())
    ]
    return Part(f"question {record['id']}", (*_filled(lines), *checks, *blind))


def _annotation(record: Mapping[str, Any], images: Mapping[str, Mapping[str, Any]], made_by: str) -> Part:
    lines: list[tuple[str, Any]] = [("in", made_by)]
    pictures = []
    for image in record["images"]:
        binding, boxes = image["binding"], image["candidates"]
        for number, box in enumerate(boxes):
            chosen = "  chosen" if number == binding["candidate"] else ""
            corners = ", ".join(f"{box[name]:.0f}" for name in ("x1", "y1", "x2", "y2"))
            lines.append((f"box {number + 1}", f"{corners}  {box['phrase']}  score {box['score']:.3f}{chosen}"))
        lines.append(("bound by", f"{binding['rule']}, margin {binding['margin']:.3f}"))
        lines += [
            ("evidence", f"{one['kind']} for box {one['candidate'] + 1}: {one['score']:.3f}  {one['detail']}".rstrip())
            for one in binding["evidence"]
        ]
        for gate in image["gates"]:
            limit = "" if gate["threshold"] is None else f" (threshold {gate['threshold']:g})"
            lines.append(
                ("gate", f"{gate['name']} {gate['value']:.4g}{limit} {'passed' if gate['passed'] else 'failed'}")
            )
        lines.append(("mask", f"of {image['width']}x{image['height']} pixels"))
        if image["image"] in images:
            pictures.append(_picture(images[image["image"]], image))
    lines += [
        ("model", " ".join(filter(None, (one["role"], one["name"], one["version"]))))
        for one in record.get("models", ())
    ]
    if record.get("portable"):
        lines.append(("note", "made by the portable annotator"))
    return Part(f"mask {record['id']}", _filled(lines), tuple(pictures))


def _prediction(told: Mapping[str, Any], *, alone: bool) -> Part:
    """A prediction; where a segmenter has several (revisions, a pilot, settings), of which snapshot and run."""
    ious = told.get("iou")
    shown = None if ious is None else ", ".join("-" if iou is None else f"{100 * iou:.1f} %" for iou in ious)
    failures = [f"{one['kind']}: {one['detail']}".rstrip(": ") for one in told.get("failures") or () if one]
    lines = [
        ("of", None if alone else f"{told['snapshot']}, run {told['key'][:8]}"),
        ("IoU", shown),
        ("answer", told.get("answer")),
        ("said", told.get("text")),
        *(("failure", failure) for failure in failures),
    ]
    steps = tuple(
        (step["module"], f"{step.get('input', '')}\n{step.get('output', '')}".strip()) for step in told["trace"] or ()
    )
    return Part(f"prediction of {told['segmenter']}", _filled(lines), folded=steps, lost=bool(failures))


def _verdict(told: Mapping[str, Any]) -> Part:
    lines = [
        ("verdict", told["verdict"].replace("_", " ")),
        ("by", told["reviewer"]),
        ("of", f"{told['snapshot']} {told['revision']}"),
        ("answer", told.get("answer")),
        ("comment", told.get("comment")),
        ("at", told.get("at")),
    ]
    return Part("review", _filled(lines), lost=told["verdict"] not in ("right", "skip", "undo"))


def _picture(image: Mapping[str, Any], annotation: Mapping[str, Any] | None = None) -> Picture:
    caption = str(image.get("caption", ""))
    return Picture(image["sha256"], image["ext"], image["width"], image["height"], caption, annotation)
