"""What a privacy model is: a deficit per class, zero exactly when the class satisfies it.

A `Model` holds parameters. Bound to a sensitive attribute of one table it becomes a `Rule`: a view of the attribute's values
and a function from class sizes and histograms over that view to deficits. Algorithms, verification and reports know
nothing else about a model, so a new one is one file in this folder: it says what it asks (`Rule.deficit`), what holds
(`strongest`), when nothing can (`infeasible`), what algorithms may do (`superset_closed`, `union_closed`, `local`), its forms
for compiled loops (`Rule.forms`), what it promises when releases are compared (`promise`, `exposed`, `crowd`) and its parameters
(`shoal.models.parameters`). Exports, configuration keys, the JSON Schema and the contract tests follow from that.

>>> import numpy as np
>>> from shoal.models.k_anonymity import KAnonymity
>>> rule = KAnonymity(3).bind(None, 10)
>>> rule.deficit(np.array([2, 3]), np.zeros((2, 0), dtype=np.int64))
array([1., 0.])
>>> KAnonymity(3).parameters(), KAnonymity.examples()[0].k, KAnonymity(3).says_more(None)
({'k': 3}, 2, True)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, like, raw
from shoal.models.column import Column, Floats, Ints, View, occurring
from shoal.models.forms import Form
from shoal.models.parameters import Name, declared
from shoal.taxonomy import Taxonomy

TOLERANCE = 1e-12
"""Numbers this close are equal (docs/models.md#deficit)."""

# Class × code matrices are worked on in pieces of about this many cells, so that intermediate ones stay small.
BLOCK = 1_000_000

Attribute = Annotated[str | None, Name("the sensitive attribute; every one if left out")]


class Promise(NamedTuple):
    """What a model promises everybody across releases: values of at least so many groups stay possible."""

    group: Ints
    """The group of each of the attribute's codes, -1 for none."""
    least: int


class Rule(ABC):
    """A model bound to one attribute of one table of n records (without a view when only the size matters)."""

    def __init__(self, model: Model, column: Column | None, view: View | None, n: int) -> None:
        self.model, self.view, self.n = model, view, n
        self.attribute = column.name if column is not None else None
        self.table_counts = np.zeros(0, dtype=np.int64)
        """Histogram of the whole table over the view."""
        if column is not None and view is not None:
            self.table_counts = view.counted(column)

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

    def forms(self) -> Sequence[Form] | None:
        """The same rule as general forms, all of which a class must satisfy; None where they do not fit.

        Without forms a rule is asked through NumPy: it works everywhere, but slower, and `peel` and `spatial_distance`
        refuse it.
        """
        return None

    def promise(self) -> Promise | None:
        """The groups of values of which so many stay possible for everybody, however many releases are compared."""
        return None

    def exposed(self, sizes: Ints, lower: Ints, upper: Ints) -> NDArray[np.bool_]:
        """Groups of persons who certainly break what the model promises of a class, by what several releases tell.

        All that is known of a group is how many persons it has, and that from `lower` to `upper` of them have each of the
        attribute's codes (groups × codes).
        """
        return np.zeros(len(sizes), dtype=np.bool_)

    def __str__(self) -> str:
        return f"{self.model}" + (f" on {self.attribute}" if self.attribute else "")


@dataclass(frozen=True)
class Model(ABC):
    """Parameters of a privacy model. Models join into a policy with `&`.

    `attribute` is the sensitive attribute that a model is about; every one by default.
    """

    name: ClassVar[str]
    main: ClassVar[str]
    """The parameter that `strongest` reports."""
    smaller_is_stronger: ClassVar[bool] = False
    """Whether a smaller main parameter asks for more, as with t and α."""
    per_attribute: ClassVar[bool] = True
    persons: ClassVar[str | None] = None
    """How the model counts people with several rows (docs/persons.md): distinct, weighed, shares, spread or mean."""
    folds: ClassVar[bool] = True
    """Whether the strongest value over some classes and some more is the weaker of the two (docs/scale.md#verdicts)."""
    local: ClassVar[bool] = False
    """Whether a class is judged by itself: neither its deficit nor the least size of a class depends on other records."""

    def __post_init__(self) -> None:
        defaults = {field.name: field.default for field in fields(self)}
        for name, parameter in declared(type(self)).items():
            value = getattr(self, name)
            if value is not None or defaults[name] is not None:
                parameter.check(self.name, name, value)

    # Properties, not class variables, because for some models they depend on the parameters.
    @property
    @abstractmethod
    def superset_closed(self) -> bool:
        """A class that satisfies the model still does after any records join it (docs/models.md#closure)."""

    @property
    @abstractmethod
    def union_closed(self) -> bool:
        """Two classes that satisfy the model satisfy it when merged (docs/models.md#closure)."""

    @property
    def beside(self) -> str | None:
        """The column whose labels the model wants beside the attribute, as a personal guard for each record."""
        return None

    @property
    def crowd(self) -> int:
        """Among how many persons the model hides everybody; 1 where it promises nothing of the kind."""
        return 1

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Model, ...]:
        """A few parameterisations that the contract tests try; none of them trivial.

        They have to bind to any column with numbers, a taxonomy and categories.
        """

    @abstractmethod
    def bind(self, column: Column | None, n: int) -> Rule:
        """The model on one sensitive attribute (`column`; None where a model needs none) of a table with `n` records.

        Returns the rule that judges classes.
        """

    def says_more(self, column: Column) -> bool:
        """Returns whether, on this `column`, the model is not merely another one under its own name."""
        return True

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are written in a configuration."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON Schema of the model's table in a configuration."""
        kinds = declared(cls)
        properties: dict[str, Any] = {}
        for field in fields(cls):
            properties[field.name] = kinds[field.name].schema() if field.name in kinds else {}
            if field.default is not MISSING and field.default is not None:
                properties[field.name]["default"] = field.default
        needed = [field.name for field in fields(cls) if field.default is MISSING]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    @classmethod
    def summary(cls) -> str:
        """What the model asks, in one sentence: the first line of its docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def __and__(self, other: Model | Any) -> Any:
        from shoal.policy import Policy

        return Policy((self,)) & other

    def __str__(self) -> str:
        shown = ", ".join(f"{key} = {value}" for key, value in self.parameters().items() if key != "attribute")
        return f"{self.name}({shown})"


def require_column(model: Model, column: Column | None) -> Column:
    """The column, or the message that the model cannot do without one."""
    if column is None:
        raise ConfigError(f"{model.name} needs a sensitive attribute.")
    return column


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
                f"{model} cannot place {raw(column.labels[code], 'a value', 'the value')} of '{column.name}': it is no leaf of "
                f"taxonomy '{tree.name}'; {like(column.labels[code], tree.leaf_codes)}"
            )
    return tree, leaves


def settled(deficit: Floats) -> Floats:
    """Rounding noise is no deficit (docs/models.md#deficit)."""
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
