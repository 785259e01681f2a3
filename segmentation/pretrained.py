"""Models in transformers' layout: their folder, their name, and loading them without a surprise.

The library downloads what is missing and fills missing weights with random numbers; here neither happens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.core.errors import ConfigError, first_line
from segmentation import weights


def model_folder(spec: str, *, weights_dir: Path, setting: str, default: str, hub: str) -> Path:
    """The folder of a model in transformers' layout; an empty `spec` means `default` in the weights folder."""
    if not spec and not (weights_dir / default).is_dir():
        raise ConfigError(
            f"{setting} is empty and {weights_dir / default} is not there: put the files of {hub} (config.json, "
            f"*.safetensors, the processor's and tokenizer's files) there, or set {setting} = {hub!r} to have them "
            "fetched once"
        )
    return weights.resolve_folder(spec or default, weights_dir=weights_dir, setting=setting)


def model_label(spec: str, folder: Path) -> str:
    """A short name for a model: the Hub name with its commit, else the folder's name."""
    return spec if weights.hub_spec(spec) and "@" in spec else folder.name


def load_pretrained(kind: Any, folder: Path, setting: str, **rest: Any) -> Any:
    """`kind.from_pretrained(folder)` without a download; weights that are missing in the folder are a `ConfigError`,
    where the library would go on with random ones."""
    import sys

    from transformers.utils import logging

    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    # The report of missing weights becomes an error below; unused ones (the other half of a model) are no matter.
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        model, report = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True, **rest)
    except (OSError, ValueError, RuntimeError, AttributeError, TypeError, KeyError) as error:
        raise ConfigError(f"{setting}: {folder} cannot be loaded as {kind.__name__}: {first_line(error)}") from error
    finally:
        logging.set_verbosity(before)
    missing = sorted(report["missing_keys"])
    if missing:
        raise ConfigError(
            f"{setting}: {folder} lacks {len(missing)} of {kind.__name__}'s weights (e.g. {', '.join(missing[:3])}): "
            "it holds another model"
        )
    return model


def require(who: str, *packages: str) -> None:
    """Raises `ConfigError` when a package of the extra is not installed."""
    import importlib.util

    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"{who} needs {package}: pip install 'nest-data-engine[gpu]'")
