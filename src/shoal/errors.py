"""The errors Shoal raises. One family for "your input or request", one class for "our bug".

Every message names the column, the value or the row, says what is allowed and what to do next;
the command line prints it as one sentence and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class ShoalError(Exception):
    """Something about the data, the configuration or the request has to change. All errors but our own bugs are of this
    family.

    The message is one sentence that names the column, the value and the way out; `exit_code` is the command line's.

    >>> import shoal
    >>> try:
    ...     shoal.TCloseness(7)
    ... except shoal.ShoalError as problem:
    ...     print(type(problem).__name__, problem.exit_code)
    ConfigError 2
    """

    exit_code = 2


class InputError(ShoalError):
    """A file or a table cannot be used as it is.

    >>> import polars as pl, shoal
    >>> shoal.Microdata.from_frame(pl.DataFrame({"age": []}), {"age": {"role": "quasi"}})
    Traceback (most recent call last):
    ...
    shoal.errors.InputError: The table has no records.
    """


class ConfigError(ShoalError):
    """The configuration or a parameter says something that is not allowed.

    >>> import shoal
    >>> shoal.KAnonymity(0)
    Traceback (most recent call last):
    ...
    shoal.errors.ConfigError: k_anonymity: k = 0 is not allowed; it must be a whole number at least 1.
    """


class InfeasibleError(ShoalError):
    """No release of this table can satisfy the policy; `message` says why, and `witness` names the column that stands
    in the way.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 40], "illness": ["flu", "flu"]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}})
    >>> try:
    ...     shoal.anonymize(data, shoal.PSensitive(2))
    ... except shoal.InfeasibleError as problem:
    ...     print(problem.witness)
    illness
    """

    def __init__(self, message: str, witness: object = None) -> None:
        super().__init__(message)
        self.witness = witness


class UnsupportedError(ShoalError):
    """This algorithm cannot work with this policy or table, and says so before working.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41], "pay": [1, 2, 3, 4]})
    >>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "pay": {"role": "sensitive"}})
    >>> shoal.anonymize(data, shoal.KPQR(2, 0.5, 0.1), algorithm="incognito")
    Traceback (most recent call last):
    ...
    shoal.errors.UnsupportedError: ...
    """


class MissingExtraError(ShoalError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}': install it with pip install 'shoal[{extra}]'.")


class VerificationError(ShoalError):
    """A table does not satisfy the policy it claims; nothing was released.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi")})
    >>> shoal.verify(masked, shoal.Policy((shoal.KAnonymity(2),)), schema).require()
    Traceback (most recent call last):
    ...
    shoal.errors.VerificationError: The table does not satisfy its policy: 1 failing classes, among them ...
    """

    exit_code = 1


class Cancelled(ShoalError):  # noqa: N818 - no mistake of anybody's
    """The work was stopped before it was done; nothing was written.

    `stage` is what was being done ("" by default), `share` how far it was (0.0 by default), `left` a sentence about
    what is there now ("Nothing was written." by default).

    >>> import shoal
    >>> progress = shoal.Progress()
    >>> progress.cancel()
    True
    >>> progress.check()
    Traceback (most recent call last):
    ...
    shoal.errors.Cancelled: Stopped, with 0 % done. Nothing was written.
    """

    exit_code = 130

    def __init__(self, stage: str = "", share: float = 0.0, left: str = "Nothing was written.") -> None:
        doing = f" while {stage}" if stage else ""
        super().__init__(f"Stopped{doing}, with {int(100 * share)} % done. {left}")
        self.stage, self.share = stage, share


class InternalError(Exception):
    """A promise inside Shoal was broken. This is our bug, not yours: please report it.

    >>> import numpy as np, shoal
    >>> shoal.Partition(np.array([0, 2]))
    Traceback (most recent call last):
    ...
    shoal.errors.InternalError: a partition's labels must be -1 (suppressed) or 0, 1, … without gaps
    """


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest allowed one, or the list of all."""
    options = list(allowed)
    near = get_close_matches(word, options, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    listed = ", ".join(options[:12]) + (", …" if len(options) > 12 else "")
    return f"allowed: {listed}."


def require_word(what: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse a word that is not among those allowed; `what` says where it stands, such as "mondrian: mode".

    >>> require_word("order", "shufle", ["shuffle", "keep"])
    Traceback (most recent call last):
        ...
    shoal.errors.ConfigError: order = 'shufle' is not allowed; did you mean 'shuffle'?
    """
    options = list(allowed)
    if value not in options:
        raise ConfigError(f"{what} = {value!r} is not allowed; {did_you_mean(str(value), options)}")
