"""The command as a user meets it: quick help, one clear sentence per mistake, the right exit code."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ("prefect", "torch", "datasets", "pyarrow", "transformers", "trafilatura", "cv2", "openai", "numpy")


def nest(
    *words: str, cwd: Path, env: dict[str, str] | None = None, timeout: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Run the command in a process of its own with no settings of ours but those given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NEST", "OPENAI", "HF_", "PREFECT"))}
    return subprocess.run(
        [sys.executable, "-m", "flows.cli", *words],
        cwd=cwd,
        env={**clean, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom flows.cli import _run\nassert _run(['--help']) == 0\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\nassert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_command_has_help(tmp_path: Path) -> None:
    import typer

    from flows.cli import app

    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert command.help, name
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"nest {name}: {parameter.name} is not explained"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("refresh", "--window", "2026-W77"), 2, "is not a window"),
        (("refresh", "--window", "soon"), 2, "2026-W48"),
        (("refresh", "--window", "2067-W01"), 4, "future"),
        (("collect", "--window", "2020-W10"), 2, "nest init"),
        (("refresh", "--windwo", "2026-W40"), 2, "--window"),
        (("refesh",), 2, "refresh"),
        (("status", "--config", "none.toml"), 2, "nest init"),
        (("push", "NEST_200101_200107"), 2, "no snapshot"),
        (("verify", "NEST_200101_200107"), 2, "no snapshot"),
        (("show", "x"), 2, "is in no finished stage"),
        (("extract", "none.html"), 1, "none.html"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    done = nest(*words, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3
    assert list(tmp_path.iterdir()) == []


def test_an_open_window_says_from_when(tmp_path: Path) -> None:
    today = time.strftime("%Y-%m-%d", time.gmtime())
    done = nest("refresh", "--window", f"2020-01-01..{today}", cwd=tmp_path)
    assert done.returncode == 4
    assert "still open" in done.stderr


def test_a_misspelt_key_names_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "nest.toml").write_text("[annotate]\nbox_treshold = 0.3\n")
    done = nest("refresh", "--window", "2020-W10", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'box_threshold'" in done.stderr


def test_an_unwritable_home_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "nest.toml").write_text('home = "file/below"\n[[source]]\nname = "x"\nurl = "http://127.0.0.1:9/"\n')
    done = nest("collect", "--window", "2020-W10", cwd=tmp_path)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "nest.toml"]


def test_init_writes_a_file_that_is_read_and_does_not_overwrite(tmp_path: Path) -> None:
    assert nest("init", cwd=tmp_path).returncode == 0
    again = nest("init", cwd=tmp_path)
    assert again.returncode == 4
    assert "--force" in again.stderr
    shown = nest("config", cwd=tmp_path)
    assert shown.returncode == 0
    assert "llm.model = 'gpt-4.1-mini-2025-04-14'" in shown.stdout


def test_config_never_shows_a_secret(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "sk-planted-secret", "HF_TOKEN": "hf_planted_secret"}
    for words in (("config",), ("config", "--json"), ("doctor",), ("status",)):
        done = nest(*words, cwd=tmp_path, env=keys)
        assert "planted" not in done.stdout + done.stderr


def test_status_of_an_empty_home_names_the_first_command(tmp_path: Path) -> None:
    done = nest("status", cwd=tmp_path)
    assert done.returncode == 0
    assert "nest init" in done.stdout
