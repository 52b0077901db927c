"""What a privacy model is: a deficit per class, zero exactly when the class satisfies it.

A `Model` holds parameters. Bound to a sensitive attribute of one table it becomes a `Rule`: a column of codes and a
function from class sizes and histograms over these codes to deficits. Algorithms, verification and reports know
nothing else about a model, so a new one is one file in this folder.

>>> import numpy as np
>>> from shoal.models.k_anonymity import KAnonymity
>>> rule = KAnonymity(3).bind(None, 10)
>>> rule.deficit(np.array([2, 3]), np.zeros((2, 0), dtype=np.int64))
array([1., 0.])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, did_you_mean
from shoal.taxonomy import Taxonomy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TOLERANCE = 1e-12
"""Numbers this close are equal (docs/models.md#deficit)."""

# Class × code matrices are worked on in pieces of about this many cells, so that intermediate ones stay small.
BLOCK = 1_000_000


class CompiledKind(IntEnum):
    """The forms of rule that compiled loops can evaluate (kernels/rules.py says what their numbers mean)."""

    SIZE = 0
    DISTINCT = 1
    WEIGHT = 2
    ENTROPY = 3
    RECURSIVE = 4
    SHARE = 5
    RANGE = 6
    DISTANCE = 7
    VARIANCE = 8
    BREACH = 9


class Compiled(NamedTuple):
    """A rule for compiled loops."""

    kind: CompiledKind
    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()


class Column(Protocol):
    """A sensitive attribute of a table, as models see it. Code -1 is missing: it counts in size only.

    A column may also have `guards`, one label a record, for personalized privacy.
    """

    @property
    def name(self) -> str:
        """The column's name."""

    @property
    def codes(self) -> NDArray[np.int32]:
        """One code per record."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The value behind each code."""

    @property
    def numbers(self) -> Floats | None:
        """The number behind each code, ascending, when the attribute is a number."""

    @property
    def ordered(self) -> bool:
        """Whether the codes are in a meaningful order."""

    @property
    def taxonomy(self) -> Taxonomy | None:
        """The attribute's taxonomy, if it has one."""

    @property
    def protect(self) -> tuple[str, ...]:
        """Protected inner nodes (docs/models.md#extended_p_sensitive)."""

    @property
    def categories(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Categories with their values, most secret first (docs/models.md#p_alpha_sensitive)."""


@dataclass(frozen=True, eq=False)
class View:
    """A column of codes that a rule counts: a sensitive attribute itself, or a grouping of its values."""

    key: tuple[Any, ...]
    codes: NDArray[np.int32]
    width: int


class Rule(ABC):
    """A model bound to one attribute of one table (`view` is None when only the size matters)."""

    def __init__(self, model: Model, attribute: str | None, view: View | None, n: int) -> None:
        self.model, self.attribute, self.view, self.n = model, attribute, view, n

    @abstractmethod
    def deficit(self, sizes: Ints, counts: Ints) -> Floats:
        """Per class: zero iff it satisfies the model, falling as it gets closer. `counts` is classes × codes."""

    @abstractmethod
    def strongest(self, sizes: Ints, counts: Ints) -> float:
        """The strongest value of the model's main parameter that holds in all these classes."""

    def infeasible(self) -> str | None:
        """Why no partition of this table can satisfy the rule, or None. Never guesses."""
        return None

    def max_classes(self) -> int:
        """A proven upper bound on the number of classes that can satisfy the rule together."""
        return self.n

    def min_size(self) -> int:
        """No class smaller than this can satisfy the rule."""
        return 1

    def compiled(self) -> Compiled | None:
        """The same rule for compiled loops, where one of their forms fits."""
        return None

    @property
    def table_counts(self) -> Ints:
        """Histogram of the whole table over the rule's codes."""
        if self.view is None:
            return np.zeros(0, dtype=np.int64)
        codes = self.view.codes
        return np.bincount(codes[codes >= 0], minlength=self.view.width).astype(np.int64)

    def __str__(self) -> str:
        return f"{self.model}" + (f" on {self.attribute}" if self.attribute else "")


@dataclass(frozen=True)
class Model(ABC):
    """Parameters of a privacy model. Models join into a policy with `&`."""

    name: ClassVar[str]
    main: ClassVar[str]
    """The parameter that `strongest` reports."""
    smaller_is_stronger: ClassVar[bool] = False
    """Whether a smaller main parameter asks for more, as with t and α."""
    per_attribute: ClassVar[bool] = True
    local: ClassVar[bool] = False
    """Whether a class is judged by itself: neither its deficit nor the least size of a class depends on other records."""

    # Properties, not class variables, because for some models they depend on the parameters.
    @property
    @abstractmethod
    def superset_closed(self) -> bool:
        """A class that satisfies the model still does after any records join it (docs/models.md#closure)."""

    @property
    @abstractmethod
    def union_closed(self) -> bool:
        """Two classes that satisfy the model satisfy it when merged (docs/models.md#closure)."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Model, ...]:
        """A few parameterisations that the contract tests try; none of them trivial.

        They have to bind to any column with numbers, a taxonomy and categories.
        """

    @abstractmethod
    def bind(self, column: Column | None, n: int) -> Rule:
        """The rule for one sensitive attribute of a table with n records."""

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in a configuration."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    def __and__(self, other: Model | Any) -> Any:
        from shoal.policy import Policy

        return Policy((self,)) & other

    def __str__(self) -> str:
        shown = ", ".join(f"{key} = {value}" for key, value in self.parameters().items() if key != "attribute")
        return f"{self.name}({shown})"


def require(
    model: str,
    parameter: str,
    value: Any,
    low: float,
    high: float | None = None,
    *,
    whole: bool = False,
    above: bool = False,
) -> None:
    """One message shape for a parameter out of range; with `above` the lowest value itself is out."""
    if above:
        allowed = f"above {low:g}" + ("" if high is None else f" and at most {high:g}")
    else:
        allowed = f"at least {low:g}" if high is None else f"between {low:g} and {high:g}"
    kind = "a whole number" if whole else "a number"
    number = isinstance(value, (int, np.integer)) if whole else isinstance(value, (int, float, np.number))
    number = number and not isinstance(value, bool) and math.isfinite(value)
    if not number or not (low < value if above else low <= value) or (high is not None and value > high):
        raise ConfigError(f"{model}: {parameter} = {value!r} is not allowed; it must be {kind} {allowed}.")


def require_word(model: str, parameter: str, value: Any, allowed: Sequence[str]) -> None:
    """One message shape for a parameter that is one of a few words."""
    if value not in allowed:
        raise ConfigError(f"{model}: {parameter} = {value!r} is not allowed; {did_you_mean(str(value), allowed)}")


def require_column(model: Model, column: Column | None) -> Column:
    """The column, or the message that the model cannot do without one."""
    if column is None:
        raise ConfigError(f"{model.name} needs a sensitive attribute.")
    return column


def own_values(column: Column) -> View:
    """The attribute's own codes; the view that most models share."""
    return View((column.name,), column.codes, max(1, len(column.labels)))


def regrouped(column: Column, key: str, group_of: Ints, groups: int) -> View:
    """The groups of the attribute's values (`group_of` says which group each code is in)."""
    # Code -1 picks the last entry, so that missing stays missing.
    lookup = np.append(group_of, -1).astype(np.int32)
    return View((column.name, key), lookup[column.codes], max(1, groups))


def occurring(column: Column) -> Ints:
    """The codes that occur in the table, ascending."""
    codes = column.codes
    return np.flatnonzero(np.bincount(codes[codes >= 0], minlength=len(column.labels))).astype(np.int64)


def leaves_of(model: Model, column: Column) -> tuple[Taxonomy, Ints]:
    """The attribute's taxonomy and the leaf of every code; -1 for codes that neither occur nor have a leaf."""
    tree = column.taxonomy
    if tree is None:
        raise ConfigError(
            f"{model} needs a taxonomy of '{column.name}' and it has none; give it one under "
            f"[attributes.{column.name}]."
        )
    leaves = np.array([tree.leaf_codes.get(label, -1) for label in column.labels], dtype=np.int64)
    for code in occurring(column):
        if leaves[code] < 0:
            raise ConfigError(
                f"{model} cannot place the value '{column.labels[code]}' of '{column.name}': it is no leaf of "
                f"taxonomy '{tree.name}'; {did_you_mean(column.labels[code], tree.leaf_codes)}"
            )
    return tree, leaves


def settled(deficit: Floats) -> Floats:
    """Rounding noise is no deficit."""
    return np.where(deficit <= TOLERANCE, 0.0, deficit)


def by_blocks(function: Callable[..., Floats], counts: Ints, *more: Ints) -> Floats:
    """`function` of the rows of large matrices, some rows at a time."""
    step = max(1, BLOCK // max(1, counts.shape[1]))
    if len(counts) <= step:
        return function(counts, *more)
    starts = range(0, len(counts), step)
    return np.concatenate([function(*(part[i : i + step] for part in (counts, *more))) for i in starts])


def rounded(value: float, *, up: bool) -> str:
    """A limit in four decimals, rounded to the side on which it can be asked for."""
    # A thousandth of the tolerance keeps 0.3 from becoming 0.3001.
    scaled = math.ceil(value * 1e4 - 1e-9) if up else math.floor(value * 1e4 + 1e-9)
    return f"{scaled / 1e4:.4f}".rstrip("0").rstrip(".")
