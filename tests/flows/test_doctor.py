"""`nest doctor`: what a stage needs and is not here is named with its mend, and refuses a run that would meet it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.core.config import Config
from engine.core.errors import ConfigError
from flows.doctor.asking import encyclopedia, recogniser
from flows.doctor.examine import refuse_unfit
from flows.doctor.finding import Finding
from flows.doctor.models import annotator, searches
from flows.run import open_run


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BRAVE_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def _words(found: Iterator[Finding]) -> list[str]:
    return [f"{one.state}: {one.what}" for one in found]


def test_a_recogniser_that_is_not_there_is_named_where_it_would_be_asked() -> None:
    told = {"ask": {"writer": "template", "recogniser": "spacy:no_such_pipeline"}}
    (words,) = _words(recogniser(Config.model_validate(told)))
    assert words.startswith("bad: [ask] recogniser")
    assert "no_such_pipeline" in words
    assert _words(recogniser(Config.model_validate({"ask": {"writer": "template"}}))) == []
    # the model reads names itself
    told["ask"]["writer"] = "llm"
    assert _words(recogniser(Config.model_validate(told))) == []


def test_each_provider_of_the_encyclopedia_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config.model_validate({"ask": {"encyclopedia": ["wikipedia", "brave", "searxng", "google"]}})
    lacking = [finding for finding in encyclopedia(config) if finding.state == "bad"]
    wanted = ("BRAVE_API_KEY", "searxng_url", "google_engine")
    assert all(word in one.what for word, one in zip(wanted, lacking, strict=True))
    assert all("[ask] encyclopedia" in one.what and one.mend for one in lacking)
    monkeypatch.setenv("BRAVE_API_KEY", "k")
    config = Config.model_validate({"ask": {"encyclopedia": ["wikipedia", "brave"]}})
    assert _words(encyclopedia(config)) == ["good: [ask] encyclopedia is complete: wikipedia, brave"]


def test_searches_need_their_keys_only_where_a_segmenter_searches() -> None:
    told = {"rose": {"search": ["local", "brave"]}, "score": {"segmenters": ["rose:portable"]}}
    (words,) = [word for word in _words(searches(Config.model_validate(told))) if word.startswith("bad")]
    assert "BRAVE_API_KEY" in words
    told["score"] = {"segmenters": ["portable"]}
    assert _words(searches(Config.model_validate(told))) == []
    told["score"] = {"segmenters": ["rose:portable"], "offline": True}  # type: ignore[dict-item]
    assert _words(searches(Config.model_validate(told))) == []
    told["rose"]["search"] = ["lcoal"]
    assert "did you mean 'local'" in _words(searches(Config.model_validate(told)))[0]


def test_all_missing_weights_are_named_one_by_one(tmp_path: Path) -> None:
    found = list(annotator(Config.model_validate({"home": str(tmp_path), "base": tmp_path})))
    assert [one.state for one in found] == ["bad"] * 3
    assert ["groundingdino_swint_ogc.pth" in found[0].what, "bert-base-uncased" in found[1].what] == [True, True]
    assert "sam_vit_h_4b8939.pth" in found[2].what


def test_a_run_that_would_meet_a_missing_key_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "nest.toml").write_text(
        'home = "home"\n[ask]\nwriter = "template"\nrecogniser = "spacy:no_such_pipeline"\nencyclopedia = ["brave"]\n'
        '[annotate]\ndetector = "portable"\nmask_model = "portable"\n[score]\nsegmenters = ["portable"]\n'
        f'[[source]]\nname = "a"\ntype = "archive"\nurl = "{tmp_path / "nest.toml"}"\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as caught:
        refuse_unfit(open_run("251103_251109", config_path=tmp_path / "nest.toml"))
    assert "no_such_pipeline" in str(caught.value)
    assert "BRAVE_API_KEY" in str(caught.value)
