"""README and docs: every command parses, Python examples run, every page that is named is there."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(language: str) -> list[tuple[str, str]]:
    return [
        (page.name, text)
        for page in PAGES
        for found, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if found == language
    ]


def _commands() -> list[tuple[str, str]]:
    lines = []
    for page, text in [*_blocks("bash"), *_blocks("cron")]:
        for line in text.splitlines():
            found = re.search(r"(?:^|&& )(nest [^#&|]*)", line.strip())
            if found:
                lines.append((page, found[1].strip()))
    for page in PAGES:
        lines += [(page.name, found) for found in re.findall(r"`(nest [a-z][^`]*)`", page.read_text(encoding="utf-8"))]
    return sorted(set(lines))


@pytest.mark.parametrize(("page", "line"), _commands())
def test_every_command_parses(page: str, line: str) -> None:
    import typer

    from flows.cli import app

    group = typer.main.get_command(app)
    words = shlex.split(re.sub(r"\bW\b", "261116_261122", line))[1:]
    if "..." in words:
        words.remove("...")
    name, *rest = words
    context = group.make_context("nest", [name], resilient_parsing=True)
    command = group.get_command(context, name)  # type: ignore[attr-defined]
    assert command is not None, f"{page}: there is no command 'nest {name}'"
    required = [p.name for p in command.params if p.required and p.param_type_name == "argument"]
    parsed = command.make_context(name, list(rest), resilient_parsing=not rest and bool(required))
    assert parsed.command is command


@pytest.mark.parametrize(("page", "text"), [b for b in _blocks("python") if "load_dataset" not in b[1]])
def test_python_examples_run(page: str, text: str) -> None:
    from inference.metrics.registry import METRICS

    before = dict(METRICS)
    space: dict[str, object] = {}
    exec(compile(text, page, "exec"), space)
    made = {name: METRICS.pop(name) for name in set(METRICS) - set(before)}
    assert len(space) > 1
    if "LeftHalf" in space:
        import numpy as np

        from engine.core.protocols import SegmentRequest

        segmenter = space["left_half"](None, deps=None, argument="")  # type: ignore[operator]
        result = segmenter.segment([SegmentRequest(np.zeros((4, 6, 3), dtype=np.uint8), "x")])[0]
        assert result.mask.shape == (4, 6)
    if "@metric" in text:
        assert set(made) == {"pr@0.95"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_files_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:docs|docker|flows|engine|segmentation|inference)/[\w./-]+)`", text))
    named |= set(re.findall(r"\]\(([\w./-]+)\)", text))
    missing = sorted(name for name in named if not (ROOT / name).exists() and not (page.parent / name).exists())
    assert missing == []


def test_every_toml_block_is_valid() -> None:
    import tomllib

    for page, text in _blocks("toml"):
        assert tomllib.loads(text), page
