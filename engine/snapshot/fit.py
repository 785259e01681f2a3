"""What is published in no form: damaged folders, cards without a contact, rows that were made for trying out."""

from __future__ import annotations

from pathlib import Path

from engine.core.errors import RefusedError, TerminalError
from engine.core.schema import SnapshotManifest
from engine.snapshot.names import CARD
from engine.snapshot.verify import verify
from engine.snapshot.verify_card import has_contact


def check_fit(manifest: SnapshotManifest, folder: Path, *, allow_portable: bool) -> None:
    """Refuse what is published in no form: a damaged folder, one without a removal contact, rows for trying out."""
    refuse_unfit(manifest, allow_portable=allow_portable)
    if bad := verify(folder, rows=False):
        raise TerminalError(f"{folder} does not verify ({bad[0].file}: {bad[0].detail}): build it again")
    refuse_unreachable(folder)


def refuse_unreachable(folder: Path) -> None:
    """Raise `RefusedError` for a card that says nowhere where a removal is asked for."""
    if not has_contact((folder / CARD).read_text(encoding="utf-8")):
        raise RefusedError(f"{folder} names no removal contact: set [snapshot] contact and build it again")


def refuse_unfit(manifest: SnapshotManifest, *, allow_portable: bool) -> None:
    """Raise `RefusedError` for rows of the portable annotator or the template writer, unless allowed."""
    if allow_portable:
        return
    if manifest.portable:
        raise RefusedError(
            f"{manifest.name} has rows of the portable annotator, which is for trying out: annotate with real models, "
            "or allow it with --allow-portable"
        )
    if manifest.template_questions:
        raise RefusedError(
            f"{manifest.name} has {manifest.template_questions} questions of the template writer: write them with a "
            "language model, or allow it with --allow-portable"
        )
