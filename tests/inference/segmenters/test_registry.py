"""Segmenters by name: the table, plugins through the same door, wrong names."""

from __future__ import annotations

import re
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
from inference.segmenters.options import options_of


def test_every_known_name_can_be_checked() -> None:
    names = [info.name for info in registry.known()]
    assert {"portable", "grounded-sam", "rose:SEGMENTER", "search-chat:SEGMENTER", "lisa", "sesame", "read"} <= set(
        names
    )
    assert {"sam3", "seg-zero", "llmseg", "remote:URL", "files:PATH"} <= set(names)
    for name in names:
        registry.check(name.replace("SEGMENTER", "portable").replace("URL", "http://127.0.0.1:8000"))
    assert all(info.needs and info.about for info in registry.known())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("portabel", "did you mean 'portable'"),
        ("rose:grounded-smm", "did you mean 'grounded-sam'"),
        ("files:", "write 'files:PATH'"),
        ("rose:rose:portable", "'rose' wraps a segmenter that takes a prompt, 'rose:portable' takes whole samples"),
        ("search-chat:files:masks", "takes whole samples"),
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


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("seg-zero", {"spcae": "norm_1"}, "options.seg-zero.spcae is not known, did you mean 'space'"),
        ("seg-zero", {"max_tokens": "many"}, "max_tokens = 'many' has to be a whole number"),
        ("llmseg", {"passes": 1.5}, "passes = 1.5 has to be a whole number"),
        ("llmseg", {"passes": -1}, "may not be negative"),
        ("sam3", {"every": 1}, "every = 1 has to be true or false"),
        ("sam3", {"threshold": True}, "threshold = True has to be a number"),
        ("portable", {"speed": 2}, "options.portable.speed is not known: 'portable' takes none"),
        ("remote", {"timeout": 3}, "did you mean 'timeout_s'"),
    ],
)
def test_a_wrong_option_is_a_config_error_before_anything_runs(
    name: str, options: dict[str, object], told: str, tmp_path: Path
) -> None:
    config = Config.model_validate({"score": {"options": {name: options}}})
    with pytest.raises(ConfigError, match=re.escape(told)):
        registry.segmenter_key(name, config, weights_dir=tmp_path)


def test_numbers_are_taken_as_they_fit() -> None:
    config = Config.model_validate({"score": {"options": {"sam3": {"threshold": 1, "every": True}}}})
    assert options_of("sam3", config) == {"threshold": 1.0, "every": True}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("options", {"segzero": {"model": "m"}}), ("endpoints", {"segzero": "http://x"}), ("weights", {"segzero": "/x"})],
)
def test_a_setting_for_nobody_names_the_nearest(setting: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"\[score\] {setting}.segzero: .*did you mean 'seg-zero'"):
        registry.check_settings(Config.model_validate({"score": {setting: value}}))
    registry.check_settings(Config.model_validate({"score": {"weights": {"lisa.vision_tower": "/x"}}}))


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
