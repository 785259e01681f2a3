"""The annotate stage: for each question the mask of its entity, in each of its images, or the reason why not.

Each image is opened, detected on and encoded once, however many questions it has. Which box is the entity is decided
by `segmentation.binding`, whether the mask is good enough by `segmentation.gates`; the models are what `deps` holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.core.config.sections import AnnotateSection
from engine.core.errors import ConfigError
from engine.core.geometry import Box
from engine.core.images import ImageError
from engine.core.masks import encode_rle
from engine.core.protocols import (
    Blobs,
    ChatModel,
    Detection,
    Detector,
    Embedder,
    MaskModel,
    References,
    Segmentation,
)
from engine.core.schema import (
    Annotation,
    Binding,
    BoxRecord,
    Code,
    ImageAnnotation,
    ModelRef,
    Question,
    Rejected,
    Stage,
)
from segmentation import gates
from segmentation.binding import Bound, Scene, Unbound, bind, candidates_of
from segmentation.binding.faces import FaceLikeness
from segmentation.binding.likeness import Likeness
from segmentation.binding.marks import Marks
from segmentation.device import OutOfMemory
from segmentation.embedders.faces import FaceVectors
from segmentation.pictures import Picture, opened

#: Part of the stage's key: raised when the same input may give another result.
VERSION = "1"
#: What a second prompt asks for.
SECOND_PHRASES = {"person": "person", "product": "object"}


@dataclass(frozen=True, slots=True)
class AnnotateDeps:
    """The models and the outside world of the stage. Without `references` nothing is compared; without `chat` no
    vision model is asked, without `faces` no face is compared."""

    detector: Detector
    mask_model: MaskModel
    blobs: Blobs
    embedder: Embedder | None = None
    references: References | None = None
    chat: ChatModel | None = None
    faces: FaceVectors | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    code: Code
    detail: str


_Outcome = ImageAnnotation | _Failure


def run(shard: Sequence[Question], config: AnnotateSection, *, deps: AnnotateDeps) -> list[Annotation | Rejected]:
    """One item per question, in the order of the shard. Raises what the models raise, except for one image that does
    not fit into memory, whose questions are rejected."""
    if config.marks and deps.chat is None:
        raise ConfigError("[annotate] marks = true needs a model that sees images: set [llm] model and sees_images")
    if config.faces and deps.faces is None:
        raise ConfigError("[annotate] faces = true needs a network of face vectors: set [annotate] face_weights")
    wanted: dict[str, list[Question]] = {}
    for question in shard:
        for image in question.images:
            wanted.setdefault(image, []).append(question)
    outcomes: dict[tuple[str, str], _Outcome] = {}

    def broken(image: str, error: ImageError) -> None:
        outcomes.update({(question.id, image): _Failure(error.code, error.detail) for question in wanted[image]})

    batches = opened(wanted, blobs=deps.blobs, references=deps.references, at_once=config.batch_images, broken=broken)
    for pictures in batches:
        pending: list[_Pending] = []
        for picture, found in zip(pictures, _detect(pictures, config, deps), strict=True):
            if isinstance(found, OutOfMemory):
                outcomes.update(_too_large(picture, found))
            else:
                pending.append(_bind(picture, found, config, deps))
        for item, masks in zip(pending, _segment(pending, deps), strict=True):
            try:
                if isinstance(masks, OutOfMemory):
                    raise masks
                outcomes.update(_judge(item, masks, config, deps))
            except (OutOfMemory, MemoryError) as error:
                outcomes.update(_too_large(item.picture, error))
    models = _models(deps)
    portable = "portable" in (deps.detector.name, deps.mask_model.name)
    return [_finish(question, outcomes, models, portable) for question in shard]


def _finish(
    question: Question, outcomes: Mapping[tuple[str, str], _Outcome], models: tuple[ModelRef, ...], portable: bool
) -> Annotation | Rejected:
    if not question.images:
        return _rejected(question, Code.NO_IMAGE, "the question has no image")
    found: list[ImageAnnotation] = []
    for image in question.images:
        outcome = outcomes[(question.id, image)]
        if isinstance(outcome, _Failure):
            where = f" (image {image[:12]})" if len(question.images) > 1 else ""
            return _rejected(question, outcome.code, outcome.detail + where)
        found.append(outcome)
    return Annotation(id=question.id, question_id=question.id, images=tuple(found), models=models, portable=portable)


def _rejected(question: Question, code: Code, detail: str) -> Rejected:
    return Rejected(item=question.id, stage=Stage.ANNOTATE, code=code, detail=detail, parent=question.article_url)


def _models(deps: AnnotateDeps) -> tuple[ModelRef, ...]:
    found = [deps.detector.model(), deps.mask_model.model()]
    if deps.embedder is not None and deps.references is not None:
        found.append(deps.embedder.model())
    if deps.faces is not None:
        found.append(deps.faces.model())
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A picture whose names are bound or not, before masks are made. `bound` are bindings by the name's index."""

    picture: Picture
    scene: Scene
    detections: Sequence[Detection]
    decisions: Sequence[Bound | Unbound]
    bound: Mapping[int, Binding]

    def boxes(self) -> list[Box]:
        return [self.scene.candidates[binding.candidate].box for binding in self.bound.values()]


def _too_large(picture: Picture, error: Exception) -> dict[tuple[str, str], _Outcome]:
    size = f"{picture.pixels.shape[1]}x{picture.pixels.shape[0]}"
    failure = _Failure(Code.OUT_OF_MEMORY, f"{size} pixels: {error}")
    return {(question.id, picture.image): failure for question in picture.questions}


def _detect(
    pictures: Sequence[Picture], config: AnnotateSection, deps: AnnotateDeps
) -> list[list[Detection] | OutOfMemory]:
    """Detections per picture, together; one by one if they don't fit into memory together."""
    requests = [picture.request(_phrases(picture, config)) for picture in pictures]
    if not requests:
        return []
    try:
        return list(deps.detector.detect(requests))
    except OutOfMemory:
        found: list[list[Detection] | OutOfMemory] = []
        for request in requests:
            try:
                found += deps.detector.detect([request])
            except OutOfMemory as error:
                found.append(error)
        return found


def _phrases(picture: Picture, config: AnnotateSection) -> list[str]:
    phrases = [name.entity.phrase for name in picture.names]
    if config.second_prompt:
        phrases += [SECOND_PHRASES[name.entity.type] for name in picture.names]
    return phrases


def _bind(picture: Picture, detections: Sequence[Detection], config: AnnotateSection, deps: AnnotateDeps) -> _Pending:
    asked = {name.entity.phrase for name in picture.names}
    candidates = candidates_of([item for item in detections if item.phrase in asked], same_iou=config.nms_iou)
    scene = Scene(picture.pixels, picture.names, candidates)
    witnesses = list(Likeness(scene, deps.embedder).witnesses())
    if config.faces and deps.faces is not None:
        witnesses.append(FaceLikeness(scene, deps.faces).by_faces)
    if config.marks and deps.chat is not None:
        witnesses.append(Marks(deps.chat, picture.caption).opinion)
    decisions = bind(scene, witnesses=witnesses, min_margin=config.min_margin)
    bound = {index: item.binding for index, item in enumerate(decisions) if isinstance(item, Bound)}
    return _Pending(picture, scene, detections, decisions, bound)


def _segment(pending: Sequence[_Pending], deps: AnnotateDeps) -> list[list[Segmentation] | OutOfMemory]:
    """Masks of the bound boxes per picture; a mask model that can encodes several pictures together."""
    tasks = [(item.picture.pixels, item.boxes()) for item in pending]
    together = getattr(deps.mask_model, "segment_many", None)
    if together is not None and len(tasks) > 1 and all(boxes for _, boxes in tasks):
        try:
            made: list[list[Segmentation] | OutOfMemory] = list(together(tasks))
            return made
        except OutOfMemory:
            pass  # one by one then, so that only the picture that is too large is lost
    found: list[list[Segmentation] | OutOfMemory] = []
    for pixels, boxes in tasks:
        try:
            found.append(deps.mask_model.segment(pixels, boxes) if boxes else [])
        except (OutOfMemory, MemoryError) as error:
            found.append(error if isinstance(error, OutOfMemory) else OutOfMemory(str(error)))
    return found


def _judge(
    item: _Pending, masks: Sequence[Segmentation], config: AnnotateSection, deps: AnnotateDeps
) -> dict[tuple[str, str], _Outcome]:
    """What becomes of each question of a picture: its binding and its mask through the gates."""
    picture, scene = item.picture, item.scene
    segmented = dict(zip(item.bound, masks, strict=True))
    faces = getattr(deps.detector, "faces", None)
    seen = faces(picture.pixels) if faces is not None else None
    outcomes: dict[tuple[str, str], _Outcome] = {}
    for question in picture.questions:
        index = picture.index_of(question)
        decision = item.decisions[index]
        if isinstance(decision, Unbound):
            outcomes[(question.id, picture.image)] = _Failure(decision.code, decision.detail)
            continue
        kind = picture.names[index].entity.type
        second = None
        if config.second_prompt:
            second = [found.box for found in item.detections if found.phrase == SECOND_PHRASES[kind]]
        mine = gates.Mine(
            box=scene.candidates[decision.binding.candidate].box,
            segmentation=segmented[index],
            others=[one.mask for other, one in segmented.items() if other != index],
            person=kind == "person",
            faces=seen,
            second=second,
        )
        figures, code = gates.check(mine, config)
        if code is None:
            made = _annotation(picture, scene, decision.binding, mine.segmentation, figures)
            outcomes[(question.id, picture.image)] = made
        else:
            failed = next((figure for figure in figures if not figure.passed), figures[0])
            told = f"gate {failed.name}: {failed.value:.3f}, asked {failed.threshold}"
            outcomes[(question.id, picture.image)] = _Failure(code, told)
    return outcomes


def _annotation(
    picture: Picture,
    scene: Scene,
    binding: Binding,
    segmentation: Segmentation,
    figures: tuple[gates.GateFigure, ...],
) -> ImageAnnotation:
    height, width = picture.pixels.shape[:2]
    return ImageAnnotation(
        image=picture.image,
        width=width,
        height=height,
        rle=encode_rle(segmentation.mask),
        candidates=tuple(
            BoxRecord(
                x1=round(item.box.x1, 2),
                y1=round(item.box.y1, 2),
                x2=round(item.box.x2, 2),
                y2=round(item.box.y2, 2),
                score=round(item.score, 5),
                phrase=max(item.phrases, key=lambda phrase: (item.phrases[phrase], phrase)),
            )
            for item in scene.candidates
        ),
        binding=binding,
        gates=figures,
    )
