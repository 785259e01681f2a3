"""Segmenters by name: the table, plugins through the same door, wrong names."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from support.blocks import BlockDetector, BlockMasker

from engine.core.config import Config
from engine.core.errors import ConfigError
from inference.segmenters import registry
from inference.segmenters.deps import InferenceDeps


def test_every_known_name_can_be_checked() -> None:
    names = [info.name for info in registry.known()]
    assert {"portable", "grounded-sam", "rose:SEGMENTER", "search-chat:SEGMENTER", "lisa", "sesame", "read"} <= set(
        names
    )
    assert {"sam3", "seg-zero", "llmseg", "remote:URL", "files:PATH"} <= set(names)
    for name in names:
        registry.check(name.replace("SEGMENTER", "portable"))
    assert all(info.needs and info.about for info in registry.known())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("portabel", "did you mean 'portable'"),
        ("rose:grounded-smm", "did you mean 'grounded-sam'"),
        ("portable:x", "'portable' takes nothing after a colon; write 'portable'"),
        ("rose:lisa:13b", "'lisa' takes nothing after a colon"),
        ("search-chat", "write for example 'search-chat:portable'"),
        ("xyzzy", "known are cris, files, gres, grounded-sam"),
    ],
)
def test_unknown_names_are_config_errors(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        registry.check(name)
    with pytest.raises(ConfigError, match=told):
        registry.make(name, Config(), deps=InferenceDeps())


def test_missing_weights_say_where_they_belong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs its weights at .*/lisa and nothing is there"):
        registry.make("lisa", Config(), deps=InferenceDeps(weights_dir=tmp_path))


def test_a_plugin_is_loaded_by_its_name_and_may_be_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", f"{__name__}:my_segmenter", registry.GROUP)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    assert registry.known()[-1] == registry.SegmenterInfo("mine", "see its package", f"plugin {point.value}")
    runner = registry.make("mine:fast", Config(), deps=InferenceDeps())
    assert runner.name == "mine:fast"
    assert registry.build("mine", Config(), deps=InferenceDeps()).segmenter is not None


def my_segmenter(config: Config, *, deps: InferenceDeps, argument: str) -> object:
    from inference.segmenters.grounded_sam import GroundedSam

    return GroundedSam(BlockDetector(), BlockMasker(), name=f"mine-{argument}")


def test_listing_and_making_loads_nothing_heavy() -> None:
    code = (
        "import sys; from inference.segmenters.registry import known, check; known(); check('rose:lisa');"
        "bad = {'torch', 'transformers', 'cv2', 'openai', 'datasets', 'prefect'} & set(sys.modules);"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
