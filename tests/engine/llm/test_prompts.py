"""Prompt files: two parts, filled in once, known by name or path."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.core.errors import ConfigError
from engine.llm.prompts import load_prompt

PACKAGE = "engine.questions"


@pytest.mark.parametrize("name", ["write_v1", "blind_v1", "read_v1"])
def test_shipped_prompts_have_two_parts(name: str) -> None:
    prompt = load_prompt(PACKAGE, name)
    assert prompt.system
    assert prompt.user
    assert len(prompt.digest) == 64


def test_a_dollar_in_an_article_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("# system\nWrite about $topic.\n# user\n$text costs $$5\n", encoding="utf-8")
    prompt = load_prompt(PACKAGE, str(path))
    assert prompt.fill(topic="$text", text="A $topic of $7") == ("Write about $text.", "A $topic of $7 costs $5")
    with pytest.raises(KeyError):
        prompt.fill(topic="x")


def test_an_edited_prompt_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("# system\na\n# user\nb\n", encoding="utf-8")
    first = load_prompt(PACKAGE, str(path)).digest
    path.write_text("# system\na\n# user\nc\n", encoding="utf-8")
    assert load_prompt(PACKAGE, str(path)).digest != first


@pytest.mark.parametrize(
    ("name", "says"), [("write", "did you mean 'write_v1'"), ("no/such/file.md", "cannot be read")]
)
def test_what_is_not_there(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_prompt(PACKAGE, name)


def test_a_file_without_parts(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text("Just write.", encoding="utf-8")
    with pytest.raises(ConfigError, match="'# system' and a '# user' part"):
        load_prompt(PACKAGE, str(path))
