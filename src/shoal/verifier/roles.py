"""Who each column of a masked table is: by the configuration, or, without one, by what it looks like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from shoal.errors import ConfigError, InputError, VerificationError, did_you_mean
from shoal.schema import Attribute, Role, Schema
from shoal.suggesting import profile

GENERALIZED = r"^[\[(].+, .+[\])]$|^\{.+\}$|\*+$"
ENDS = ("_min", "_max")


@dataclass(frozen=True)
class Assumed:
    """The role that a column seems to have where nobody says."""

    name: str
    role: Role
    why: str


def masked_schema(schema: Schema, masked: pl.DataFrame) -> Schema:
    """The schema of a `masked` table, by the configuration's `schema`: every column declared, identifiers gone, `"*"`
    spelled out.

    Columns that the configuration does not know are refused as `anonymize` refuses them, whatever they are called.
    `age_min` and `age_max` together are the quasi-identifier `age` where it is not there itself. Returns a schema for
    `shoal.verify`.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import masked_schema
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "*": shoal.Attribute(role="other")})
    >>> list(masked_schema(schema, pl.DataFrame({"age": ["*"], "ward": [1]})).attributes)
    ['age', 'ward']
    """
    columns = list(masked.columns)
    declared = {name: attribute for name, attribute in schema.attributes.items() if name != "*"}
    for name in columns:
        if name in declared and declared[name].pseudonym is not None:
            continue  # that it holds pseudonyms is asked with the other transformations
        if name in declared and declared[name].role == "identifier":
            raise VerificationError(f"The masked table still has the identifier '{name}'; identifiers never leave.")
        if name in declared and declared[name].role == "person" and declared[name].publish != "token":
            raise VerificationError(
                f"The masked table still has the person column '{name}'; it never leaves, unless publish = \"token\" puts a "
                "random number for each person in its place."
            )
    pairs = {end for name in declared for end in _pair(name, columns, schema)}
    undeclared = [name for name in columns if name not in declared and name not in pairs]
    for name in undeclared:
        if "*" not in schema.attributes and (owner := name.removesuffix("_min").removesuffix("_max")) in declared:
            raise ConfigError(
                f"Column '{name}' has no role; only together, and without '{owner}' itself, are '{owner}_min' and '{owner}_max' "
                "the two ends of a quasi-identifier that is a number or a date."
            )
    rest = schema.rest(undeclared)
    if undeclared and rest is not None and rest.role == "identifier":
        raise VerificationError(
            f"The masked table has the column '{undeclared[0]}', which [attributes.\"*\"] makes an identifier; identifiers "
            "never leave."
        )
    found = {**declared, **(dict.fromkeys(undeclared, rest) if rest is not None else {})}
    return Schema(found, schema.folder, schema.missing)


def published_quasi(masked: pl.DataFrame, schema: Schema) -> list[str]:
    """The columns that carry the quasi-identifiers: `age`, or `age_min` and `age_max`.

    `masked` is the published table, `schema` the declared columns. Returns names; raises where a column is missing.

    >>> import polars as pl, shoal
    >>> from shoal.verifier import published_quasi
    >>> masked = pl.DataFrame({"age_min": [20], "age_max": [29]})
    >>> published_quasi(masked, shoal.Schema({"age": shoal.Attribute(role="quasi")}))
    ['age_min', 'age_max']
    """
    found: list[str] = []
    for name in schema.named("quasi"):
        if name in masked.columns:
            found.append(name)
        elif ends := _pair(name, masked.columns, schema):
            found += ends
        else:
            raise InputError(
                f"The masked table has no column '{name}', which is a quasi-identifier; "
                f"{did_you_mean(name, masked.columns)}"
            )
    for name in schema.named("sensitive"):
        if name not in masked.columns:
            raise InputError(f"The masked table has no column '{name}', which is a sensitive attribute.")
    return found


def assumed_roles(table: pl.DataFrame) -> list[Assumed]:
    """Every column of a `table` with the role that it seems to have; a column nobody can place is a quasi-identifier.

    What looks like an identifier should not be there at all. It is counted as something that an intruder knows. Returns
    one entry a column, with the reason.

    >>> import polars as pl
    >>> from shoal.verifier import assumed_roles
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]"], "illness": ["flu", "cold"]})
    >>> [(column.name, column.role) for column in assumed_roles(masked)]
    [('age', 'quasi'), ('illness', 'sensitive')]
    """
    suggested = {column.name: column for column in profile(table).columns} if table.height > 1 else {}
    found = []
    for name in table.columns:
        series = table[name]
        owner = name.removesuffix("_min").removesuffix("_max")
        other = {f"{owner}_min": f"{owner}_max", f"{owner}_max": f"{owner}_min"}.get(name)
        if other in table.columns and series.dtype.is_numeric() and table[other].dtype.is_numeric():
            found.append(Assumed(name, "quasi", f"one end of the intervals of {owner}"))
        elif series.dtype == pl.String and series.str.contains(GENERALIZED).any():
            found.append(Assumed(name, "quasi", "generalized: intervals, sets or stars"))
        elif name not in suggested:
            found.append(Assumed(name, "quasi", "nobody can tell from one record"))
        elif suggested[name].consider:
            # Nobody says that others do not know it.
            found.append(Assumed(name, "quasi", "nothing is known about it"))
        elif suggested[name].role == "identifier":
            found.append(
                Assumed(name, "quasi", f"looks like an identifier ({suggested[name].why}); it should not be there")
            )
        else:
            found.append(Assumed(name, suggested[name].role, suggested[name].why))
    if found and all(column.role != "quasi" for column in found):
        found = [Assumed(c.name, "quasi", f"{c.why}; counted as known, since no other is") for c in found]
    return found


def assumed_schema(columns: Sequence[Assumed]) -> Schema:
    """Returns the schema of assumed roles (`columns`, from `assumed_roles`), with nothing known about values.

    >>> from shoal.verifier import assumed_schema
    >>> from shoal.verifier.roles import Assumed
    >>> assumed_schema([Assumed("age", "quasi", "generalized")]).named("quasi")
    ['age']
    """
    return Schema({column.name: Attribute(role=column.role) for column in columns})  # type: ignore[call-arg]


def _pair(name: str, columns: Sequence[str], schema: Schema) -> list[str]:
    """Both ends of a quasi-identifier that is published as two columns of numbers, or nothing."""
    attribute = schema.attributes[name]
    ends = [f"{name}{end}" for end in ENDS]
    numeric = attribute.kind != "category" and attribute.order is None and attribute.taxonomy is None
    free = not any(end in schema.attributes for end in ends)
    together = name not in columns and all(end in columns for end in ends)
    return ends if attribute.role == "quasi" and numeric and free and together else []
