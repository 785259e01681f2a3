"""Fetching a dataset from the Hub at a pinned revision (`HF_ENDPOINT` and `HF_TOKEN` are honoured)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.core.errors import ConfigError, TransientError

PATTERNS = ("data/*", "provenance/*", "README.md", "snapshot.json")


def download(
    repo: str,
    *,
    revision: str | None = None,
    cache_dir: Path | None = None,
    endpoint: str | None = None,
    patterns: Sequence[str] = PATTERNS,
) -> tuple[Path, str]:
    """The folder of a dataset's files and the commit it was taken at.

    `endpoint` None is `HF_ENDPOINT` or the Hub's own; `patterns` are the files that are wanted.

    Raises `ConfigError` where there is no such dataset or revision or no right to read it, `TransientError`
    where the Hub does not answer.
    """
    import httpx2
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        commit = HfApi(endpoint=endpoint).dataset_info(repo, revision=revision).sha
        if not commit:
            raise ConfigError(f"the Hub names no commit for {repo} at {revision or 'its head'}")
        folder = snapshot_download(
            repo,
            repo_type="dataset",
            revision=commit,
            cache_dir=cache_dir,
            allow_patterns=list(patterns),
            endpoint=endpoint,
        )
    except RevisionNotFoundError as error:
        raise ConfigError(f"the dataset {repo} has no revision {revision}: look at its branches and tags") from error
    except RepositoryNotFoundError as error:
        raise ConfigError(f"there is no dataset {repo} on the Hub, or HF_TOKEN may not read it") from error
    except (HfHubHTTPError, httpx2.TransportError, OSError) as error:
        raise TransientError(f"the Hub did not give {repo}: {error}: try again later") from error
    return Path(folder), commit
