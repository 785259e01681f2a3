"""The exceptions of the whole system. A bad item is a `Rejected` value; a bad situation is one of these.

NestError                  a sentence for the user, and the exit code of the command
 +-- ConfigError           2   something in nest.toml, the environment or the call is wrong or missing
 +-- TransientError        3   patience is spent; the work stays undone, run again later
 |    +-- BudgetSpent      3   the money or token limit of the run is reached
 |    +-- QuotaExhausted   3   the account behind a key has nothing left, or the key expired during the run
 +-- TerminalError         1   trying again would not help
 +-- RefusedError          4   the action was possible and was refused, on purpose
      +-- BusyError        4   another process does it at this moment; who has time may wait
"""

from __future__ import annotations


class NestError(Exception):
    """Base of all errors that are shown to a user as one sentence."""

    exit_code = 1


class ConfigError(NestError):
    """The configuration, a key, a weight file or an argument is wrong or missing."""

    exit_code = 2


class TransientError(NestError):
    """A network or model service failed for longer than the client is willing to wait."""

    exit_code = 3


class BudgetSpent(TransientError):
    """The run's limit of money or tokens is reached; what is done is kept."""


class QuotaExhausted(TransientError):
    """The account has no quota left; waiting inside the run would not help."""


class TerminalError(NestError):
    """The situation will not get better by trying again."""

    exit_code = 1


class RefusedError(NestError):
    """The action is refused on purpose, for example overwriting a published snapshot."""

    exit_code = 4


class BusyError(RefusedError):
    """Another process holds the lock; waiting for it would help."""


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its type where it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
