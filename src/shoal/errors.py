"""The errors Shoal raises. One family for "your input or request", one class for "our bug".

Every message names the column, the value or the row, says what is allowed and what to do next;
the command line prints it as one sentence and exits with `exit_code`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

LONGEST = 80
"""Characters of a value that a message repeats."""
_may_show = False


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


@contextmanager
def show_values(may: bool = True) -> Iterator[None]:
    """Let messages repeat values of the table (`--show-values`), or not, which is the default: logs outlive tables.

    >>> with show_values():
    ...     raw("flu", "its value")
    "'flu'"
    """
    global _may_show
    before, _may_show = _may_show, may
    try:
        yield
    finally:
        _may_show = before


def raw(value: object, instead: str, called: str = "") -> str:
    """A value of the table as a message may say it: `instead` of the value, unless values may be shown; then `called` so.

    >>> raw("flu", "its value")
    'its value'
    """
    if not _may_show:
        return instead
    plain = shown(int(value) if isinstance(value, float) and value.is_integer() else value)
    return f"{called} {plain}" if called else plain


def because(problem: Exception) -> str:
    """What another library says about a value, in brackets, where values may be shown."""
    return f" ({' '.join(str(problem).split())})" if _may_show else ""


def which() -> str:
    """The end of a sentence about a value that it does not repeat."""
    return "" if _may_show else "; --show-values says which"


def like(word: str, values: Iterable[str]) -> str:
    """`did_you_mean` where the allowed words are values of the table, which a message does not repeat by itself."""
    return did_you_mean(word, values) if _may_show else "--show-values lists those there are."


def shown(value: object) -> str:
    """What somebody wrote in a request, on one line and not at length; of what is no plain value, only its type.

    >>> shown("shufle"), shown(print), shown([1, 2])
    ("'shufle'", 'a builtin_function_or_method', '[1, 2]')
    """
    if value is not None and not isinstance(value, str | bytes | int | float | complex | list | tuple | Mapping):
        return f"a {type(value).__name__}" if not hasattr(value, "isoformat") else str(value)
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def require_a(what: str, value: Any, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Refuse a value of another type; `what` says where it stands, `wanted` what it must be. True is no number.

    >>> require_a("seed", "7", int, "a whole number")
    Traceback (most recent call last):
        ...
    shoal.errors.ConfigError: seed = '7' is not allowed; it must be a whole number.
    """
    allowed = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ConfigError(f"{what} = {shown(value)} is not allowed; it must be {wanted}.")


def require_names(what: str, listed: Any) -> None:
    """A list of texts, and not one text, which would be a list of its letters."""
    require_a(what, listed, (list, tuple), "a list of texts")
    if not listed and what != "missing":
        raise ConfigError(f"{what} = [] is not allowed; name one column at least, or leave it out.")
    for one in listed:
        require_a(f"an entry of {what}", one, str, "a text")


def require_seed(seed: Any) -> None:
    """A seed is a whole number from 0 up, of Python or of NumPy."""
    whole = hasattr(seed, "__index__") and not isinstance(seed, bool) and not hasattr(seed, "__len__")
    if not whole or seed < 0:
        raise ConfigError(f"seed = {shown(seed)} is not allowed; it must be a whole number from 0 up.")


def require_switch(what: str, value: Any) -> None:
    """Refuse what is neither True nor False: a word or a number would be taken for yes."""
    require_a(what, value, bool, "True or False")


def require_whole(what: str, value: Any, least: int, most: int) -> None:
    """Refuse what is no whole number from `least` to `most`."""
    wanted = f"a whole number from {least:,} to {most:,}"
    require_a(what, value, int, wanted)
    if not least <= value <= most:
        raise ConfigError(f"{what} = {shown(value)} is not allowed; it must be {wanted}.")


def did_you_mean(word: object, allowed: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: the nearest allowed one, or the list of all."""
    options = list(allowed)
    near = get_close_matches(word, options, n=1) if isinstance(word, str) else []
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
    if not isinstance(value, str) or value not in options:
        raise ConfigError(f"{what} = {shown(value)} is not allowed; {did_you_mean(value, options)}")
