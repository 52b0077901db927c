"""Per-column transformations, applied before anything is encoded: round, code the ends, truncate, shift dates, make pseudonyms.

They are the ways out for a column that is too fine to be published as it is. Rounding, coding and truncating are idempotent, so
that a masked table can be tested for having been transformed: transforming it again changes nothing. Pseudonyms are known by
their form. Whether dates were shifted cannot be seen without the key, which is as it should be.

>>> import polars as pl
>>> from shoal.configuration import read_schema
>>> schema = read_schema({"cost": {"role": "other", "round": 100, "top": 5000}})
>>> transformed(pl.DataFrame({"cost": [149.5, 151.0, 98_000.0]}), schema)["cost"].to_list()
[100.0, 200.0, 5000.0]
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from shoal.columns import EXACT_INTEGER, texts, typed
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.io.keys import TOKEN, offsets, pseudonyms, secret_key
from shoal.schema import Attribute, Schema, Shift

_ENDS = r"^\[([^,\[\]]+), ([^,\[\]]+)\]$"
EVERY = {"day": "1d", "month": "1mo", "quarter": "1q", "year": "1y", "decade": "10y"}


def transformed(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The table with every declared transformation applied; other columns as they are."""
    changed = []
    for name, attribute in schema.attributes.items():
        if name not in table.columns or not declared(attribute) or not (attribute.stays or attribute.role == "person"):
            continue
        series = table[name]
        if attribute.pseudonym is not None:
            series = _pseudonyms(series, secret_key(schema.folder / attribute.pseudonym))
        if attribute.shift is not None:
            series = _shifted(series, attribute, attribute.shift, table, schema)
        changed.append(_transform(series, attribute) if _repeatable(attribute) else series)
    return table.with_columns(changed) if changed else table


def declared(attribute: Attribute) -> dict[str, object]:
    """The transformations a column declares, by name, as a manifest tells them: nothing about keys."""
    found = _repeatable(attribute)
    if attribute.shift is not None:
        found["shift"] = {"days": attribute.shift.days}
    if attribute.pseudonym is not None:
        found["pseudonym"] = "HMAC-SHA256"
    return found


def _repeatable(attribute: Attribute) -> dict[str, object]:
    """Those that change nothing when they are applied again, as they are written in a configuration."""
    found = {name: getattr(attribute, name) for name in ("round", "top", "bottom", "truncate")}
    return {name: value for name, value in found.items() if value is not None}


def require_transformed(masked: pl.DataFrame, schema: Schema) -> None:
    """Fail when a column was not transformed as declared: its values, or the ends of its intervals, would change again."""
    for name, attribute in schema.attributes.items():
        if name in masked.columns and attribute.pseudonym is not None:
            _require_tokens(masked[name])
        if attribute.role == "quasi" and _repeatable(attribute):
            for part in (name, f"{name}_min", f"{name}_max"):
                if part in masked.columns:
                    _require_ends(masked[part], attribute)
        if name not in masked.columns or attribute.role == "quasi" or not _repeatable(attribute):
            continue
        again = _transform(masked[name], attribute)
        # In a text file dates are texts.
        before = (
            typed(masked[name], attribute)[0]
            if again.dtype == pl.Date
            else masked[name].cast(again.dtype, strict=False)
        )
        _require_none(name, attribute, int((before.ne_missing(again)).sum()))


def _require_none(name: str, attribute: Attribute, wrong: int) -> None:
    if wrong:
        listed = ", ".join(f"{key} = {value}" for key, value in _repeatable(attribute).items())
        raise VerificationError(
            f"Column '{name}' is declared with {listed}, and {wrong} of its published values do not follow that."
        )


def _require_ends(series: pl.Series, attribute: Attribute) -> None:
    """The ends of a quasi-identifier's intervals are values of the table and follow what is declared, nodes of a taxonomy not.

    Where nothing is an interval, values may be means, which lie between the ends and are not rounded.
    """
    if attribute.taxonomy is not None or attribute.order is not None or attribute.kind == "category":
        return
    texts = pl.DataFrame({"text": series.cast(pl.String)})
    ends = texts.select(
        low=pl.col("text").str.extract(_ENDS, 1).fill_null(pl.col("text")),
        high=pl.col("text").str.extract(_ENDS, 2).fill_null(pl.col("text")),
    )
    # Stars, missing values and whatever is neither a number nor a date is looked at elsewhere.
    ends = ends.filter(~pl.any_horizontal(pl.all().str.contains(r"[^0-9eE.+\-]").fill_null(True)))
    means = not texts["text"].str.contains(_ENDS).any() and not series.name.endswith(("_min", "_max"))
    told = attribute.model_copy(update={"round": None, "truncate": None}) if means else attribute
    if not len(ends) or not _repeatable(told):
        return
    if told.kind is None:
        days = ends["low"].str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$").all()
        told = told.model_copy(update={"kind": "date" if days else "number"})
    wrong = pl.Series([False] * len(ends))
    for column in ends.iter_columns():
        before = typed(column, told)[0]
        wrong |= before.ne_missing(_transform(before, told))
    _require_none(series.name, told, int(wrong.sum()))


def _require_tokens(series: pl.Series) -> None:
    wrong = int((~series.cast(pl.String).str.contains(TOKEN)).sum())
    if wrong:
        raise VerificationError(
            f"Column '{series.name}' is declared with pseudonym, and {wrong} of its published values are none: the original may "
            "stand there."
        )


def _pseudonyms(series: pl.Series, key: bytes) -> pl.Series:
    """A token for each value; 7 and 7.0 are one value, whatever the type of the column."""
    shown = _as_text(series)
    different = shown.drop_nulls().unique(maintain_order=True)
    return shown.replace_strict(different, pseudonyms(different, key), default=None, return_dtype=pl.String)


def _shifted(series: pl.Series, attribute: Attribute, shift: Shift, table: pl.DataFrame, schema: Schema) -> pl.Series:
    """Dates moved by the secret number of days of whoever they belong to, so that the time between two of them stays."""
    name = series.name
    if not isinstance(series.dtype, pl.Datetime):
        series, kind = typed(series, attribute)
        if kind != "date":
            raise ConfigError(
                f"[attributes.{name}] shift: the column holds no dates; declare how they are written with format."
            )
    owner = _as_text(table[_whose(name, shift, table, schema)])
    if owner.null_count():
        row = int(owner.is_null().arg_max() or 0) + 1
        raise InputError(
            f"Column '{name}' is shifted by person, and '{owner.name}' does not say whose record {row} is; fill it in."
        )
    different = owner.unique(maintain_order=True)
    days = offsets(different, secret_key(schema.folder / shift.key), shift.days)
    moved = owner.replace_strict(different, days, return_dtype=pl.Int64)
    return pl.select((pl.lit(series) + pl.duration(days=pl.lit(moved))).cast(series.dtype).alias(name)).to_series()


def _whose(name: str, shift: Shift, table: pl.DataFrame, schema: Schema) -> str:
    """The column that says whose a date is."""
    if shift.by is not None:
        if shift.by not in table.columns:
            raise ConfigError(f"[attributes.{name}] shift: the table has no column '{shift.by}' to shift by.")
        return shift.by
    named = [schema.person] if schema.person is not None else schema.named("identifier")
    if len(named) != 1 or named[0] not in table.columns:
        found = f"there are {len(named)} identifiers" if named else "there is no person column and no identifier"
        raise ConfigError(
            f'[attributes.{name}] shift: nothing says whose dates move together ({found}); name the column with by = "…".'
        )
    return str(named[0])


def _as_text(series: pl.Series) -> pl.Series:
    return texts(series, "number" if series.dtype.is_numeric() else "category")


def _transform(series: pl.Series, attribute: Attribute) -> pl.Series:
    """One column: truncated, rounded, then its ends coded."""
    name = series.name
    if isinstance(attribute.truncate, int) and series.dtype == pl.String and attribute.kind in (None, "category"):
        _only(name, attribute, "truncate")
        return series.str.slice(0, attribute.truncate)
    if isinstance(attribute.truncate, str) and (series.dtype.is_numeric() or attribute.kind == "number"):
        raise ConfigError(f"[attributes.{name}] truncate: a number is truncated to decimals, as in truncate = 2.")
    values, kind = typed(series, attribute)
    if kind == "category":
        raise ConfigError(
            f"[attributes.{name}] {next(iter(_repeatable(attribute)))}: the column is a category; declare "
            'kind = "number" or "date", or truncate = a number of characters.'
        )
    if kind == "date":
        return _dates(values, attribute, name)
    ends = [None if end is None else _number(end, name) for end in (attribute.bottom, attribute.top)]
    whole = series.dtype.is_integer() and all(
        float(value).is_integer() for value in (attribute.round, *ends) if value is not None
    )
    numbers = values
    if isinstance(attribute.truncate, int):
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
    others = [key for key in _repeatable(attribute) if key != what]
    if others:
        raise ConfigError(f"[attributes.{name}] {others[0]}: the column is text, which can only be truncated.")


def _decimals(step: float) -> int:
    exponent = Decimal(repr(step)).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
