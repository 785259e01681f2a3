"""Configuration: order of sources, refusals that name the nearest key, what goes into keys."""

import ast
import inspect
import itertools
import textwrap
from pathlib import Path

import pytest

from engine.core.config import Section, load_config
from engine.core.config import sections as all_sections
from engine.core.errors import ConfigError


def test_environment_beats_file_and_overrides_beat_both(tmp_path: Path) -> None:
    path = tmp_path / "nest.toml"
    path.write_text('home = "here"\n[llm]\nmodel = "a"\nmax_in_flight = 3\n')
    config = load_config(path, environ={"NEST__LLM__MODEL": "b"}, overrides={"llm.max_in_flight": 5})
    assert (config.llm.model, config.llm.max_in_flight) == ("b", 5)
    assert config.home == tmp_path / "here"


def test_nest_home_wins(tmp_path: Path) -> None:
    assert load_config(None, environ={"NEST_HOME": str(tmp_path)}).home == tmp_path


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[collect]\nobey_robot = true\n", "obey_robots"),
        ("[colect]\n", "collect"),
        ('[[source]]\nname = "x"\nurll = "http://x"\n', "url"),
        ("[window]\nlag_days = -1\n", "greater than or equal to 0"),
        ("[window\n", "not valid TOML"),
        ('[source]\nname = "x"\n', r"write \[\[source\]\]"),
        ("[llm]\nmax_usd = inf\n", "finite"),
        ('[[source]]\nname = "x"\n[[source]]\nname = "x"\n', "same name"),
    ],
)
def test_a_wrong_file_names_the_key_and_the_nearest(tmp_path: Path, text: str, hint: str) -> None:
    path = tmp_path / "nest.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=hint) as caught:
        load_config(path, environ={})
    assert str(path) in str(caught.value)


def test_options_of_the_command_are_not_blamed_on_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nest.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"options of the command: 'llm\.max_usd'") as caught:
        load_config(path, environ={}, overrides={"llm.max_usd": -1.0})
    assert str(path) not in str(caught.value)


def test_the_environment_is_blamed_for_its_own_keys_and_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "nest.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"^NEST__LLM__MODLE: unknown key 'llm.modle', did you mean 'model'"):
        load_config(path, environ={"NEST__LLM__MODLE": "x"})
    with pytest.raises(ConfigError, match=r"^NEST__COLLECT__ALLOW_HOSTS: .*write a list"):
        load_config(path, environ={"NEST__COLLECT__ALLOW_HOSTS": "127.0.0.1"})
    path.write_text("home = 3")
    with pytest.raises(ConfigError, match=r"nest\.toml: 'home': write the path"):
        load_config(path, environ={})


def test_a_folder_called_nest_toml_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nest.toml").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"nest\.toml cannot be read"):
        load_config(environ={})


def test_a_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nest init"):
        load_config(tmp_path / "none.toml", environ={})


def _described(kind: type) -> set[str]:
    """Fields that are followed by a sentence about them. The sentences are for who reads the file: collecting them
    when the program starts costs every command a tenth of its time."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    return {
        first.target.id
        for first, then in itertools.pairwise(body.body)
        if isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)
        if isinstance(then, ast.Expr) and isinstance(then.value, ast.Constant) and str(then.value.value).strip()
    }


def test_every_setting_is_documented() -> None:
    sections = [kind for kind in vars(all_sections).values() if isinstance(kind, type) and issubclass(kind, Section)]
    assert len(sections) >= 14
    assert [(kind.__name__, set(kind.model_fields) - _described(kind)) for kind in sections] == [
        (kind.__name__, set()) for kind in sections
    ]


def test_concurrency_and_addresses_are_in_no_key() -> None:
    config = load_config(None, environ={})
    assert not {"base_url", "max_in_flight", "max_usd"} & set(config.llm.keyed())
    assert not {"resolve", "allow_hosts", "timeout_s"} & set(config.collect.keyed())
    for kind in vars(all_sections).values():
        if isinstance(kind, type) and issubclass(kind, Section):
            assert set(kind.model_fields) >= kind.NOT_IN_KEY, kind


def test_the_starter_file_is_valid() -> None:
    import flows.commands.setup as setup

    starter = Path(setup.__file__).parent / "starter.toml"
    assert len(load_config(starter, environ={}).source) >= 3
