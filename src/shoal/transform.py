"""Per-column transformations, applied before anything is encoded: round, code the ends, truncate.

They are the ways out for a column that is too fine to be published as it is. Each is idempotent, so that a masked table can be
tested for having been transformed: transforming it again changes nothing.

>>> import polars as pl
>>> from shoal.schema import read_schema
>>> schema = read_schema({"cost": {"role": "other", "round": 100, "top": 5000}})
>>> transformed(pl.DataFrame({"cost": [149.5, 151.0, 98_000.0]}), schema)["cost"].to_list()
[100.0, 200.0, 5000.0]
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from shoal.columns import EXACT_INTEGER, typed
from shoal.errors import ConfigError, VerificationError
from shoal.schema import Attribute, Schema

EVERY = {"day": "1d", "month": "1mo", "quarter": "1q", "year": "1y", "decade": "10y"}


def transformed(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The table with every declared transformation applied; other columns as they are."""
    changed = [
        _transform(table[name], attribute)
        for name, attribute in schema.attributes.items()
        if name in table.columns and declared(attribute) and attribute.role != "identifier"
    ]
    return table.with_columns(changed) if changed else table


def declared(attribute: Attribute) -> dict[str, object]:
    """The transformations a column declares, by name, as they are written in a configuration."""
    found = {name: getattr(attribute, name) for name in ("round", "top", "bottom", "truncate")}
    return {name: value for name, value in found.items() if value is not None}


def require_transformed(masked: pl.DataFrame, schema: Schema) -> None:
    """Fail when a column that is published as it is was not transformed as declared."""
    for name, attribute in schema.attributes.items():
        if name not in masked.columns or attribute.role == "quasi" or not declared(attribute):
            continue
        again = _transform(masked[name], attribute)
        before = masked[name].cast(again.dtype, strict=False)
        wrong = int((before.ne_missing(again)).sum())
        if wrong:
            listed = ", ".join(f"{key} = {value}" for key, value in declared(attribute).items())
            raise VerificationError(
                f"Column '{name}' is declared with {listed}, and {wrong} of its published values do not follow that."
            )


def _transform(series: pl.Series, attribute: Attribute) -> pl.Series:
    """One column: truncated, rounded, then its ends coded."""
    name = series.name
    if isinstance(attribute.truncate, int) and series.dtype == pl.String and attribute.kind in (None, "category"):
        _only(name, attribute, "truncate")
        return series.str.slice(0, attribute.truncate)
    values, kind = typed(series, attribute)
    if kind == "category":
        raise ConfigError(
            f"[attributes.{name}] {next(iter(declared(attribute)))}: the column is a category; declare "
            'kind = "number" or "date", or truncate = a number of characters.'
        )
    if kind == "date":
        return _dates(values, attribute, name)
    ends = [None if end is None else _number(end, name) for end in (attribute.bottom, attribute.top)]
    whole = series.dtype.is_integer() and all(
        float(value).is_integer() for value in (attribute.round, *ends) if value is not None
    )
    numbers = values
    if attribute.truncate is not None:
        if not isinstance(attribute.truncate, int):
            raise ConfigError(f"[attributes.{name}] truncate: a number is truncated to decimals, as in truncate = 2.")
        numbers = numbers.truncate(attribute.truncate)
    if attribute.round is not None:
        step = attribute.round
        # The product of a whole number and a step such as 0.1 has noise in its last digit; the step's own decimals do not.
        numbers = ((numbers / step).round() * step).round(_decimals(step))
    numbers = numbers.clip(*ends)
    return numbers.cast(series.dtype) if whole else numbers


def _dates(dates: pl.Series, attribute: Attribute, name: str) -> pl.Series:
    if attribute.round is not None or isinstance(attribute.truncate, int):
        raise ConfigError(f"[attributes.{name}] a date is coarsened with truncate = one of {', '.join(EVERY)}.")
    if attribute.truncate is not None:
        dates = dates.dt.truncate(EVERY[attribute.truncate])
    low, high = (None if end is None else _date(end, name) for end in (attribute.bottom, attribute.top))
    return dates.clip(low, high)


def _number(end: float | str, name: str) -> float:
    try:
        number = float(end)
    except ValueError:
        raise ConfigError(f"[attributes.{name}] {end!r} is not a number, as the column holds.") from None
    if not abs(number) <= EXACT_INTEGER:
        raise ConfigError(
            f"[attributes.{name}] {end!r} is too large for a number; top and bottom lie among the values."
        )
    return number


def _date(end: float | str, name: str) -> pl.Expr:
    parsed = pl.Series([str(end)]).str.to_date("%Y-%m-%d", strict=False)
    if parsed.null_count():
        raise ConfigError(f"[attributes.{name}] {end!r} is not a date such as 2024-03-31.")
    return pl.lit(parsed[0])


def _only(name: str, attribute: Attribute, what: str) -> None:
    others = [key for key in declared(attribute) if key != what]
    if others:
        raise ConfigError(f"[attributes.{name}] {others[0]}: the column is text, which can only be truncated.")


def _decimals(step: float) -> int:
    exponent = Decimal(repr(step)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
