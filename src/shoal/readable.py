"""Will what is published be read back as it was meant? Asked before the search begins, because it cannot be mended after.

Two labels that every reader takes for one (`clerk` and `clerk `), values that look suppressed or missing, a character that no
text file can hold: the published classes would not be those that were made. Labels that only look like a set or an interval are
written in quotes and need no refusal.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.columns import is_named, texts, typed
from shoal.errors import ConfigError, InputError
from shoal.io.files import check_cells, kind_of
from shoal.io.lean import is_lean, lean, spelled, spelled_out, texts_of
from shoal.io.numbers import infer_numbers
from shoal.microdata import Microdata, encode_sensitive
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.space import Domain, Interval, Tree
from shoal.verifier.judging import judge
from shoal.verifier.meaning import ANYTHING, reader_of

SAMPLE = 2_000
"""Records on which two ways to read a column are compared."""


def require_readable(data: Microdata) -> None:
    """Refuse a table of which no release could be read back as it was meant; the way out is in the sentence."""
    labels = {name: _labels(domain) for name, domain in zip(data.quasi, data.domains, strict=True)}
    for name, attribute in data.schema.attributes.items():
        if attribute.role == "identifier":
            continue
        if "\0" in name:
            raise InputError("A column's name holds a NUL character, which no text file can hold; rename it.")
        # What no label holds no record does, and there are far fewer of them.
        if name in data.table.columns and not _plain(labels.get(name, [])):
            require_characters(data.table[name])
    for name, domain in zip(data.quasi, data.domains, strict=True):
        _require_told_apart(data, name, domain)


def _plain(labels: list[str]) -> bool:
    """Whether these are all the texts of a column, and all of them such as files can hold."""
    return bool(labels) and not any(label == "" or "\0" in label for label in labels)


def require_fitting(data: Microdata, policy: Policy, output: Path) -> None:
    """Refuse what the format of an output cannot show: before the search, not after it.

    Text files have no types: numbers and dates that came as something else are read as something else, which matters to the
    models that measure distances.
    """
    kind, _, _ = kind_of(output, None)
    published = data.table.drop(data.schema.named("identifier"), data.schema.named("person"))
    if kind == "xlsx":
        published = spelled_out(published)
        check_cells(published, output)
        nothing = published.select(pl.all_horizontal(pl.all().is_null())).to_series()
        if nothing.any():
            raise InputError(
                f"Record {int(nothing.arg_max() or 0) + 1} has no value in any column that is published, and in '{output.name}' "
                "such a row is lost, because Excel files hold cells and not rows; leave it out, or write another format."
            )
    if kind not in ("text", "jsonl"):
        return
    for name in data.schema.named("sensitive"):
        # What the texts are taken for is the same for all records that have one.
        held = data.table[name]
        column = texts_of(lean(held)) if is_lean(held) else held
        meant = _kind(column, name, data.schema)
        text = texts(column, "number" if column.dtype.is_numeric() else "category")
        found = text if kind == "jsonl" and not column.dtype.is_numeric() else _inferred(text)
        if _kind(found, name, data.schema) == meant:
            continue
        seen = _kind(found, name, data.schema)
        sample = spelled(held.head(SAMPLE)) if is_lean(held) else text.head(SAMPLE)
        if _measured(policy, sample, meant, data.schema) != _measured(policy, sample, seen, data.schema):
            raise ConfigError(
                f"Column '{name}' is {_word(meant)}, and in '{output.name}' every reader takes it for "
                f"{_word(seen)}, which the policy measures otherwise; declare its kind under "
                f"[attributes.{name}], or write .parquet."
            )


def require_characters(column: pl.Series) -> None:
    """Refuse texts that no file can hold, and empty ones where missing is written as nothing."""
    if is_lean(column):
        known = texts_of(column)
        if not ((known == "") | known.str.contains("\0", literal=True)).any():
            return
        column = spelled(column)
    if column.dtype != pl.String:
        return
    nul = column.str.contains("\0", literal=True).fill_null(False)
    if nul.any():
        raise InputError(
            f"Column '{column.name}', record {int(nul.arg_max() or 0) + 1}: it holds a NUL character, which no text file can "
            "hold; remove it."
        )
    if column.null_count() and (column == "").any():
        raise InputError(
            f"Column '{column.name}' has empty texts beside missing values, and both are written as nothing; make them one."
        )


def _require_told_apart(data: Microdata, name: str, domain: Domain) -> None:
    """Every label of a quasi-identifier means something of its own, and none means anything or nothing."""
    labels = _labels(domain)
    if not labels:
        return
    keys = reader_of(labels, name, data.schema)(labels)
    seen: dict[Any, str] = {}
    for label, key in zip(labels, keys, strict=True):
        if key is None:
            raise _refusal(data, name, [label], "reads as missing", "correct it, or make it missing")
        if key == ANYTHING and not isinstance(domain, Tree):
            continue  # in quotes it is a label
        if key == ANYTHING or (isinstance(domain, Tree) and _looks_generalized(label, name, data.schema)):
            raise _refusal(data, name, [label], "ends in *, which stands for any value", "correct it")
        other = seen.setdefault(key, label)
        if other != label:
            way = (
                'make them one, or, if they are not, declare kind = "category" and tell them apart by more than spaces'
            )
            raise _refusal(data, name, [other, label], "are spelled so that every reader takes them for one", way)


def _labels(domain: Domain) -> list[str]:
    """The texts of single values; inner nodes are the taxonomy's own affair."""
    if isinstance(domain, Tree):
        return list(domain.taxonomy.labels[: domain.size - domain.has_missing])
    if isinstance(domain, Interval):
        return list(domain.labels or ())
    return list(domain.labels)


def _looks_generalized(label: str, name: str, schema: Schema) -> bool:
    """A raw value such as 41*** where stars are how the taxonomy generalizes."""
    source = schema.attributes[name].taxonomy
    return not is_named(source) and getattr(source, "prefix", None) is not None and label.rstrip().endswith("*")


def _refusal(data: Microdata, name: str, labels: list[str], what: str, way_out: str) -> InputError:
    """Where the values are; the values themselves are not repeated."""
    if name not in data.table.columns:  # nobody has the records here
        return InputError(f"Column '{name}': {'a value' if len(labels) == 1 else 'two values'} {what}; {way_out}.")
    series, kind = typed(data.frame[name], data.schema.attributes[name])
    shown = texts(series, kind)
    rows = [int((shown == label).arg_max() or 0) + 1 for label in labels]
    where = f"the value of record {rows[0]}" if len(rows) == 1 else f"the values of records {rows[0]} and {rows[1]}"
    return InputError(f"Column '{name}': {where} {what}; {way_out}.")


def _inferred(text: pl.Series) -> pl.Series:
    return infer_numbers(text.to_frame(), lambda row: f"record {row + 1}").to_series()


def _kind(series: pl.Series, name: str, schema: Schema) -> str:
    return typed(series, schema.attributes[name])[1]


def _word(kind: str) -> str:
    return {"number": "a number", "date": "a date", "category": "text"}[kind]


def _measured(policy: Policy, text: pl.Series, kind: str, schema: Schema) -> list[Any]:
    """What the models find in a column of this kind, in a few ways to divide its records: equal where they count alike."""
    name, n = text.name, len(text)
    attribute = schema.attributes[name].model_copy(update={"kind": kind})
    column = encode_sensitive(text.to_frame(), name, replace(schema, attributes={name: attribute}))
    found: list[Any] = []
    for model in policy.models:
        if not model.per_attribute or getattr(model, "attribute", None) not in (None, name):
            continue
        try:
            rule = model.bind(column, n)
        except ConfigError:
            found.append("cannot be asked")
            continue
        for classes in (2, 3, 7):
            labels = np.arange(n, dtype=np.int64) % min(classes, n)
            strongest, deficits = judge([rule], labels, np.bincount(labels).astype(np.int64), [column])
            found.append((repr(round(strongest[0], 9)), round(float(deficits.sum()), 9)))
    return found
