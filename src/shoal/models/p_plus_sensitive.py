"""p+-sensitivity: values of at least p categories in every class (docs/models.md#p_plus_sensitive)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from shoal.errors import ConfigError, raw
from shoal.models.base import Attribute, Model, Rule, require_column
from shoal.models.column import Column, Ints, occurring, regrouped
from shoal.models.p_sensitive import DistinctRule
from shoal.models.parameters import Whole


@dataclass(frozen=True)
class PPlusSensitive(Model):
    """Every class has values of at least `p` of the categories that the schema gives the attribute.

    This is extended p-sensitivity on the taxonomy root → category → value with every category protected.

    >>> import shoal
    >>> print(shoal.PPlusSensitive(2))
    p_plus_sensitive(p = 2)
    """

    p: Annotated[int, Whole("categories in every class", 1)]
    attribute: Attribute = None

    name: ClassVar[str] = "p_plus_sensitive"
    persons: ClassVar[str] = "distinct"
    superset_closed: ClassVar[bool] = True
    union_closed: ClassVar[bool] = True
    main: ClassVar[str] = "p"
    local: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        """Two categories and more."""
        return cls(2), cls(3)

    def bind(self, column: Column | None, n: int) -> Rule:
        """Count categories instead of values."""
        column = require_column(self, column)
        view = regrouped(column, "categories", category_of(self, column), len(column.categories))
        return DistinctRule(self, column, view, n, self.p, counted="categories")


def category_of(model: Model, column: Column) -> Ints:
    """The category of every code, 0 for the most secret; -1 for codes that neither occur nor have one."""
    if not column.categories:
        raise ConfigError(
            f"{model} needs the categories of '{column.name}', most secret first; give them under "
            f"[attributes.{column.name}] categories."
        )
    category: dict[str, int] = {}
    for index, (name, values) in enumerate(column.categories):
        for value in values:
            if category.setdefault(value, index) != index:
                raise ConfigError(
                    f"The value '{value}' of '{column.name}' is in the categories "
                    f"'{column.categories[category[value]][0]}' and '{name}'; keep one."
                )
    of_code = np.array([category.get(label, -1) for label in column.labels], dtype=np.int64)
    for code in occurring(column):
        if of_code[code] < 0:
            raise ConfigError(
                f"{raw(column.labels[code], 'A value', 'The value')} of '{column.name}' is in none of the categories "
                f"{', '.join(name for name, _ in column.categories)}, and {model} needs them all placed."
            )
    return of_code
