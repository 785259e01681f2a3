"""Prompt files: Markdown in package data, a `# system` and a `# user` part, `$name` for what is filled in.

A prompt's digest is part of the stage's key, so an edited prompt is another stage. Files are versioned by name
(`write_v1`), and an old one stays.
"""

from __future__ import annotations

import difflib
import re
import string
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from engine.core.errors import ConfigError
from engine.core.store import sha256_bytes


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's two texts before anything is filled in, and the sha256 of its file."""

    name: str
    system: str
    user: str
    digest: str

    def fill(self, **values: str) -> tuple[str, str]:
        """System and user text. Values are put in once: a `$` in an article stays a `$`. KeyError if one lacks."""
        return (string.Template(self.system).substitute(values), string.Template(self.user).substitute(values))


def load_prompt(package: str, name: str) -> Prompt:
    """Read `<package>/prompts/<name>.md`, or a file of the user's if `name` ends in .md.

    Raises `ConfigError` with the known names for one that is not there, or for a file without the two parts.
    """
    if name.endswith(".md"):
        path = Path(name)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the prompt file {path} cannot be read: {error}") from error
        return _parse(path.stem, text)
    folder = resources.files(package).joinpath("prompts")
    known = sorted(item.name.removesuffix(".md") for item in folder.iterdir() if item.name.endswith(".md"))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f", did you mean '{near[0]}'?" if near else ""
        raise ConfigError(f"there is no prompt '{name}'{hint} Known are {', '.join(known)}, or the path of an .md file")
    return _parse(name, folder.joinpath(f"{name}.md").read_text(encoding="utf-8"))


def _parse(name: str, text: str) -> Prompt:
    match = re.search(r"^# system\s*\n(.*?)^# user\s*\n(.*)\Z", text, re.S | re.M)
    if match is None:
        raise ConfigError(f"the prompt '{name}' needs a '# system' and a '# user' part, in that order")
    return Prompt(name, match[1].strip(), match[2].strip(), sha256_bytes(text.encode()))
