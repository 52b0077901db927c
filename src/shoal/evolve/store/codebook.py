"""The values a store has seen, column by column: they are the domains that codes belong to, and they grow with the table.

A codebook is never changed; learning new values gives another one, and `moves` says where the old codes went.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import (
    by_count,
    declared_taxonomy,
    is_named,
    numbers_of,
    sensitive_taxonomy,
    texts,
    told_apart,
    typed,
)
from shoal.errors import InputError, like, raw
from shoal.evolve.releases.people import crowd, of_people
from shoal.models import Sensitive
from shoal.models.persons import Crowd
from shoal.policy import Policy, Rules
from shoal.schema import Attribute, Schema, TaxonomySource
from shoal.space import EPOCH, Codes, Domain, Interval, Measure, Set, Space, Tree
from shoal.spelling import alike
from shoal.taxonomy import Taxonomy

Floats = NDArray[np.float64]
Map = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Codebook:
    """The known values of one column: labels in the order they came, or numbers (dates too) ascending."""

    name: str
    attribute: Attribute
    labels: tuple[str, ...] = ()
    numbers: Floats | None = None
    has_missing: bool = False

    @property
    def fixed(self) -> tuple[str, ...] | None:
        """All values there can be, where the configuration says so."""
        if self.attribute.order is not None:
            return tuple(self.attribute.order)
        given = self.attribute.taxonomy
        if isinstance(given, Taxonomy):
            return tuple(given.labels[: given.leaves])
        if self.attribute.categories is not None:
            return tuple(value for values in self.attribute.categories.values() for value in values)
        return None

    @cached_property
    def taxonomy(self) -> Taxonomy | None:
        """The declared taxonomy, or the one its rule makes of the known values."""
        given = self.attribute.taxonomy
        if given is None or isinstance(given, Taxonomy):
            return given
        kind = str(self.attribute.kind)
        schema = Schema({self.name: self.attribute})
        return declared_taxonomy(pl.DataFrame(), self._known(), kind, self.name, schema)

    @cached_property
    def counted_as(self) -> NDArray[np.int32]:
        """The code that each label of a sensitive attribute is counted as: that of the first one that a reader takes for the
        same (`shoal.spelling`), -1 for those that mean missing. Declared values stand for themselves."""
        if self.fixed is not None or self.attribute.kind != "category":
            return np.arange(len(self.sensitive.labels), dtype=np.int32)
        found = np.full(len(self.labels), -1, dtype=np.int32)
        for group in alike(self.labels):
            found[group] = group[0]
        return found

    @cached_property
    def domain(self) -> Domain:
        """What the column is as a quasi-identifier."""
        if self.attribute.order is not None:
            ranks = np.arange(len(self.attribute.order), dtype=np.float64)
            return Interval(ranks, max(1.0, len(ranks) - 1.0), self.has_missing, tuple(self.attribute.order))
        if self.taxonomy is not None:
            return Tree(self.taxonomy.with_missing() if self.has_missing else self.taxonomy, self.has_missing)
        if self.numbers is None:
            return Set(self.labels, self.has_missing)
        return Interval(self.numbers, self._width, self.has_missing, is_date=self.attribute.kind == "date")

    @cached_property
    def sensitive(self) -> Sensitive:
        """What the column is as a sensitive attribute, without records."""
        labels, numbers = self.labels, self.numbers
        if self.attribute.order is not None:
            labels = tuple(self.attribute.order)
        elif numbers is not None:
            whole = Interval(numbers, 0.0, is_date=self.attribute.kind == "date")
            labels = tuple(whole.text(i) for i in range(len(numbers)))
        return Sensitive(
            name=self.name,
            codes=np.zeros(0, dtype=np.int32),
            labels=labels,
            numbers=numbers,
            ordered=numbers is not None or self.attribute.order is not None,
            taxonomy=self.taxonomy,
            protect=tuple(self.attribute.protect),
            categories=tuple((key, tuple(found)) for key, found in (self.attribute.categories or {}).items()),
        )

    def learn(self, column: pl.Series) -> Codebook:
        """The codebook that also knows these values: itself when there is nothing new; refuses what may not be."""
        series, kind = typed(column, self.attribute)
        book = self
        if series.null_count() and not self.has_missing:
            book = replace(book, has_missing=True)
        if self.fixed is not None:
            what = "taxonomy" if self.attribute.taxonomy is not None else "list of categories"
            what = "order" if self.attribute.order is not None else what
            _require_known(texts(series, kind), self.fixed, self, what)
        if kind == "category":
            known = set(self.labels)
            fresh = tuple(label for label in by_count(series) if label not in known)
            book = replace(book, labels=self.labels + fresh) if fresh else book
        else:
            numbers = numbers_of(series)
            self._require_inside(numbers)
            seen = self.numbers if self.numbers is not None else np.zeros(0)
            new = np.setdiff1d(numbers.drop_nulls().to_numpy(), seen)
            if len(new) or self.numbers is None:
                book = replace(book, numbers=np.sort(np.concatenate([seen, new])))
        return book

    def codes(self, column: pl.Series, *, secret: bool = False) -> NDArray[np.int32]:
        """Codes of known values; missing is the domain's last code, or -1 in a sensitive attribute."""
        series, kind = typed(column, self.attribute)
        tree = self.taxonomy is not None and not secret
        if kind == "category" or tree or self.attribute.order is not None:
            labels: Sequence[str] = self.sensitive.labels
            if not secret:
                labels = self.labels
                if self.attribute.order is not None:
                    labels = self.attribute.order
                elif self.taxonomy is not None:
                    labels = self.taxonomy.labels[: self.taxonomy.leaves]
            missing = -1 if secret else self.domain.missing_code
            written = texts(series, kind) if tree else series
            found = written.cast(pl.Enum(list(labels))).to_physical().cast(pl.Int32).fill_null(missing).to_numpy()
            return np.append(self.counted_as, np.int32(-1))[found] if secret else found
        numbers = numbers_of(series)
        assert self.numbers is not None
        found = np.searchsorted(self.numbers, numbers.fill_null(0.0).to_numpy()).astype(np.int32)
        found[numbers.is_null().to_numpy()] = -1 if secret else len(self.numbers)
        return found

    def moves(self, old: Codebook, *, secret: bool = False) -> Map | None:
        """The new code of each code of an older codebook; None where all stay."""
        if old is self:
            return None
        if secret:
            before, after = old.sensitive, self.sensitive
            if before.numbers is None or after.numbers is None:
                # A new spelling may show that two values were one all along.
                counted = self.counted_as[: len(before.labels)].astype(np.int64)
                same = np.array_equal(counted, old.counted_as)
                return None if same else np.where(counted >= 0, counted, np.arange(len(counted)))
            if len(before.numbers) == len(after.numbers):
                return None
            return np.searchsorted(after.numbers, before.numbers)
        was, now = old.domain, self.domain
        if isinstance(was, Tree) and isinstance(now, Tree):
            leaf = now.taxonomy.leaf_codes
            known = was.taxonomy.labels[: was.size - was.has_missing]
            kept = np.array([leaf[label] for label in known], dtype=np.int64)
        elif isinstance(was, Interval) and isinstance(now, Interval):
            kept = np.searchsorted(now.values, was.values)
        else:
            kept = np.arange(was.size - was.has_missing)
        if was.has_missing:
            kept = np.append(kept, now.missing_code)
        return None if np.array_equal(kept, np.arange(was.size)) else kept

    @property
    def size(self) -> int:
        """How many values are known, missing included."""
        return len(self.labels) + (0 if self.numbers is None else len(self.numbers)) + self.has_missing

    def news(self, old: Codebook) -> list[str | None]:
        """The values that an older codebook did not know, as texts; None is missing."""
        fresh: list[str | None] = list(self.labels[len(old.labels) :])
        if self.numbers is not None:
            seen = old.numbers if old.numbers is not None else np.zeros(0)
            fresh += [repr(number) for number in np.setdiff1d(self.numbers, seen).tolist()]
        return [*fresh, None] if self.has_missing and not old.has_missing else fresh

    def read(self, written: Sequence[str | None]) -> Codebook:
        """The codebook with values that another one has written."""
        known = [value for value in written if value is not None]
        has_missing = self.has_missing or len(known) < len(written)
        if self.attribute.kind == "category":
            return replace(self, labels=(*self.labels, *known), has_missing=has_missing)
        seen = self.numbers if self.numbers is not None else np.zeros(0)
        numbers = np.sort(np.concatenate([seen, np.array(known, dtype=np.float64)]))
        return replace(self, numbers=numbers, has_missing=has_missing)

    def _known(self) -> pl.Series:
        if self.numbers is None:
            return pl.Series(self.name, self.labels, dtype=pl.String)
        numbers = pl.Series(self.name, self.numbers, dtype=pl.Float64)
        return numbers.cast(pl.Int32).cast(pl.Date) if self.attribute.kind == "date" else numbers

    @property
    def _bounds(self) -> tuple[float, float] | None:
        if self.attribute.domain is None:
            return None
        low, high = (
            float((date.fromisoformat(end) - EPOCH).days) if isinstance(end, str) else float(end)
            for end in self.attribute.domain
        )
        return low, high

    @property
    def _width(self) -> float:
        low, high = self._bounds or (0.0, 0.0)
        if self._bounds is None and self.numbers is not None and len(self.numbers):
            low, high = float(self.numbers[0]), float(self.numbers[-1])
        return high - low

    def _require_inside(self, numbers: pl.Series) -> None:
        if self._bounds is None or self.taxonomy is not None:
            return
        outside = ((numbers < self._bounds[0]) | (numbers > self._bounds[1])).fill_null(False)
        if outside.any():
            row = int(outside.arg_max() or 0)
            raise InputError(
                f"Column '{self.name}', record {row + 1} of the batch: {raw(float(numbers[row]), 'the value')} lies outside the "
                "declared domain; correct it, or make a new store with a wider domain."
            )


class Books:
    """The codebooks of a store: of its quasi-identifiers, its sensitive attributes, and columns of guarding nodes."""

    def __init__(self, schema: Schema, policy: Policy, books: Mapping[tuple[str, str], Codebook] | None = None) -> None:
        self.schema, self.policy = schema, policy
        wanted = policy.beside(schema.named("sensitive"))
        self._beside = {at: [name for name in names if name in schema.attributes] for at, names in wanted.items()}
        roles = [("quasi", name) for name in schema.named("quasi")]
        roles += [("sensitive", name) for name in schema.named("sensitive")]
        roles += [("guard", name) for name in dict.fromkeys(name for names in self._beside.values() for name in names)]
        plain = Attribute(role="other", kind="category")  # type: ignore[call-arg]
        self.books = {
            (role, name): (books or {}).get((role, name))
            or Codebook(name, plain if role == "guard" else schema.attributes[name])
            for role, name in roles
        }

    def learn(self, frame: pl.DataFrame) -> Books:
        """Books that also know these records: itself when there is nothing new."""
        if frame.height == 0:
            return self
        learned = {place: book.learn(frame[place[1]]) for place, book in self.books.items()}
        if all(learned[place] is book for place, book in self.books.items()):
            return self
        return Books(self.schema, self.policy, learned)

    def codes(self, frame: pl.DataFrame) -> tuple[Codes, Codes]:
        """Codes of the quasi-identifiers, and of sensitive attributes and guarding nodes."""
        if frame.height == 0:
            quasi = len(self.schema.named("quasi"))
            return np.zeros((0, quasi), dtype=np.int32), np.zeros((0, len(self.books) - quasi), dtype=np.int32)
        columns = {place: book.codes(frame[place[1]], secret=place[0] != "quasi") for place, book in self.books.items()}
        return _side_by_side(columns, True, frame.height), _side_by_side(columns, False, frame.height)

    def space(self, measure: Measure) -> Space:
        """The domains of the quasi-identifiers with a loss measure."""
        names = self.schema.named("quasi")
        weights = np.array([self.schema.attributes[name].weight for name in names])
        return Space(tuple(self.books["quasi", name].domain for name in names), weights, measure)

    def bind(self, codes: Codes) -> Rules:
        """The policy's rules on a table with these sensitive codes."""
        return self.policy.bind(self.sensitive(codes), len(codes))

    def sensitive(self, codes: Codes) -> tuple[Sensitive | Crowd, ...]:
        """The sensitive attributes of a table with these sensitive codes."""
        names = self.schema.named("sensitive")
        if of_people(self.schema):
            labels = [np.array([*self.books["sensitive", name].labels, None], dtype=object) for name in names]
            return tuple(crowd(name, own[codes[:, j]]) for j, (name, own) in enumerate(zip(names, labels, strict=True)))
        guards = [place[1] for place in self.books if place[0] == "guard"]
        columns = []
        for j, name in enumerate(names):
            column = replace(self.books["sensitive", name].sensitive, codes=np.ascontiguousarray(codes[:, j]))
            beside = {}
            for guard in self._beside.get(name, ()):
                nodes = np.array([*self.books["guard", guard].labels, None], dtype=object)
                beside[guard] = nodes[codes[:, len(names) + guards.index(guard)]]
            columns.append(replace(column, beside=beside))
        return tuple(columns)

    def moves(self, old: Books) -> tuple[list[Map | None], list[Map | None]]:
        """Where the codes of older books went: for quasi-identifiers, and for the rest."""
        quasi: list[Map | None] = []
        rest: list[Map | None] = []
        for (role, name), book in self.books.items():
            secret = role != "quasi"
            (rest if secret else quasi).append(book.moves(old.books[role, name], secret=secret))
        return quasi, rest

    def news(self, old: Books) -> list[dict[str, Any]]:
        """What these books know more than older ones, as rows of the table of values."""
        rows = []
        for (role, name), book in self.books.items():
            before = old.books[role, name]
            fresh = book.news(before) if book is not before else []
            rows += [
                {"column": f"{role} {name}", "position": before.size + i, "value": value}
                for i, value in enumerate(fresh)
            ]
        return rows

    def read(self, rows: Iterable[Any]) -> Books:
        """The books with these rows of the table of values too."""
        found: dict[str, list[str | None]] = {}
        for column, value in rows:
            found.setdefault(column, []).append(value)
        if not found:
            return self
        read = {
            (role, name): book.read(found[f"{role} {name}"]) if f"{role} {name}" in found else book
            for (role, name), book in self.books.items()
        }
        return Books(self.schema, self.policy, read)


def settled(schema: Schema, frame: pl.DataFrame) -> Schema:
    """The schema with every kind and taxonomy written down, so that later batches are read as the first table was."""
    found: dict[str, Attribute] = {}
    for name, attribute in schema.attributes.items():
        series, kind = typed(frame[name], attribute) if attribute.role in ("quasi", "sensitive") else (None, None)
        if series is None:
            found[name] = attribute
            continue
        taxonomy = attribute.taxonomy
        rule = isinstance(taxonomy, TaxonomySource) and taxonomy.parents is None and taxonomy.rows is None
        if taxonomy is not None and not rule and attribute.role == "sensitive":
            told = told_apart(texts(series, str(kind)), name, attribute, ()) if not is_named(taxonomy) else None
            taxonomy = sensitive_taxonomy(told.labels if told else (), str(kind), name, schema)
        elif taxonomy is not None and not rule:
            taxonomy = declared_taxonomy(frame, series, str(kind), name, schema)
        found[name] = attribute.model_copy(update={"kind": kind, "taxonomy": taxonomy})
    return replace(schema, attributes=found)


def _side_by_side(columns: Mapping[tuple[str, str], NDArray[np.int32]], quasi: bool, n: int) -> Codes:
    parts = [codes for (role, _), codes in columns.items() if (role == "quasi") == quasi]
    stacked = np.stack(parts, axis=1) if parts else np.zeros((n, 0))
    return np.ascontiguousarray(stacked, dtype=np.int32)


def _require_known(series: pl.Series, labels: Sequence[str], book: Codebook, what: str) -> None:
    strange = (~series.is_in(pl.Series(labels, dtype=pl.String).implode())).fill_null(False)
    if strange.any():
        row = int(strange.arg_max() or 0)
        more = f" (and {int(strange.sum()) - 1} more records)" if strange.sum() > 1 else ""
        raise InputError(
            f"Column '{book.name}', record {row + 1} of the batch: the {what} does not know {raw(series[row], 'the value')}"
            f"{more}; correct it, or make a new store with a {what} that has it; {like(str(series[row]), labels)}"
        )
