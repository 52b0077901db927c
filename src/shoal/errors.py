"""The errors Shoal raises. One family for "your input or request", one class for "our bug".

Every message names the column, the value or the row, says what is allowed and what to do next;
the command line prints it as one sentence and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ShoalError(Exception):
    """Something about the data, the configuration or the request has to change."""

    exit_code = 2


class InputError(ShoalError):
    """A file or a table cannot be used as it is."""


class ConfigError(ShoalError):
    """The configuration or a parameter says something that is not allowed."""


class InfeasibleError(ShoalError):
    """No release of this table can satisfy the policy; `witness` names what stands in the way."""

    def __init__(self, message: str, witness: object = None) -> None:
        super().__init__(message)
        self.witness = witness


class UnsupportedError(ShoalError):
    """This algorithm cannot work with this policy or table, and says so before working."""


class MissingExtraError(ShoalError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}': install it with pip install 'shoal[{extra}]'.")


class VerificationError(ShoalError):
    """A table does not satisfy the policy it claims; nothing was released."""

    exit_code = 1


class Cancelled(ShoalError):  # noqa: N818 - no mistake of anybody's
    """The work was stopped before it was done; nothing was written. `stage` is what was being done, `share` how far it was."""

    exit_code = 130

    def __init__(self, stage: str = "", share: float = 0.0) -> None:
        doing = f" while {stage}" if stage else ""
        super().__init__(f"Stopped{doing}, with {int(100 * share)} % done. Nothing was written.")
        self.stage, self.share = stage, share


class InternalError(Exception):
    """A promise inside Shoal was broken. This is our bug, not yours: please report it."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest allowed one, or the list of all."""
    options = list(allowed)
    near = get_close_matches(word, options, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    listed = ", ".join(options[:12]) + (", …" if len(options) > 12 else "")
    return f"allowed: {listed}."
