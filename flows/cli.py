"""The `nest` command: parses, calls, and turns exceptions into one sentence and an exit code.

0 done or nothing to do, 1 failed, 2 usage or config, 3 finished with work left, 4 refused, 130 interrupted.
Imports here are light: help answers without prefect, torch or datasets.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from types import FrameType
from typing import NoReturn

import typer

from engine.core.errors import NestError
from flows import console
from flows.commands import compare, correct, evaluate, look, operate, pipeline, publish, quote, review, setup

app = typer.Typer(
    name="nest",
    help="From a week of news to a published segmentation benchmark, and its scores.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for part in (pipeline, publish, review, correct, evaluate, quote, compare, look, setup, operate):
    part.register(app)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and exit with its code."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(_run(arguments))


def _run(arguments: list[str] | None) -> int:
    try:
        code = app(arguments, standalone_mode=False)
    except NestError as error:
        console.say(f"nest: {error}")
        return error.exit_code
    except typer.Exit as ended:
        return _interrupted() if ended.exit_code == 130 else ended.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: a sentence instead of a traceback
        return _usage_or_crash(error)
    if code == 130:  # typer turns a KeyboardInterrupt into this
        return _interrupted()
    return code if isinstance(code, int) else 0


def _interrupted() -> int:
    console.say("nest: interrupted; what was finished is kept, run the same command to go on")
    return 130


def _usage_or_crash(error: Exception) -> int:
    show = getattr(error, "format_message", None)
    if show is not None:  # click's usage errors
        console.say(f"nest: {show()}")
        context = getattr(error, "ctx", None)
        console.say(f"try: {context.command_path if context else 'nest'} --help")
        return 2
    if isinstance(error, OSError):
        console.say(f"nest: {error.filename or 'a file'}: {error.strerror or error}; what was finished is kept")
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="nest-crash-", suffix=".txt", delete=False) as handle:
        traceback.print_exception(error, file=handle)
    console.say(f"nest: a fault in the program ({type(error).__name__}: {error}); the details are in {handle.name}")
    return 1


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
