"""The declaration questioned: what may be published as it is?

A policy protects what was declared a quasi-identifier. A column with the role `other` or `sensitive` leaves untouched, and if
it names people, tells records apart or repeats a quasi-identifier in other words, every class can be taken apart again with
it. So each such column is examined before anything is released, and again in every masked file that is verified or attacked:

- does it look like a direct identifier (e-mail addresses, coordinates, free text …)?
- how many records are alone with their value of it? Whoever knows the value finds the record.
- does it determine a quasi-identifier, or is it determined by one? Date of birth beside age, town beside zip: whoever knows the
  quasi-identifier then knows the column too, whatever the masked value hides.

A dangerous `other` column is refused, unless its owner accepts it with a reason that the manifest shows. A sensitive column is
refused only where it names people: every model assumes that nobody knows it, so what it would tell is said, not forbidden.

>>> import polars as pl
>>> from shoal.configuration import read_schema
>>> table = pl.DataFrame({"age": [34, 36] * 20, "contact": [f"p{i}@example.org" for i in range(40)]})
>>> schema = read_schema({"age": {"role": "quasi"}, "contact": {"role": "other"}})
>>> [(finding.column, finding.problem, finding.refused) for finding in examine(table, schema).findings]
[('contact', 'identifier', True)]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import InputError, ShoalError
from shoal.io.lean import spelled, spelled_out
from shoal.looks import ENOUGH, direct_identifier
from shoal.schema import Attribute, Schema

Problem = Literal["identifier", "separates", "determines", "determined", "follows"]
Codes = NDArray[np.int64]

ALONE = 0.05
"""A column is dangerous when so many records are alone with their value: an intruder who knows it finds one in twenty."""
CERTAIN = 0.95
"""One column determines another when this share of what is uncertain without it is certain with it."""
IN_STEP = 0.999
"""Two numbers follow each other when their ranks are as good as equal: pounds beside kilograms, cents beside euros."""
SAMPLE = 20_000
"""Records on which columns are compared with each other, evenly spaced: what holds for nearly all shows in these."""
COVERED = 0.5
"""So many records must have a companion with the same value before a column can be said to determine anything."""


@dataclass(frozen=True)
class Finding:
    """One column published as it is, and what is dangerous about it."""

    column: str
    role: str
    problem: Problem
    records: int
    """How many records it concerns."""
    of: int
    """How many records there are."""
    detail: str
    refused: bool
    accepted: str | None = None
    """The owner's reason, where the column was accepted by hand."""

    def __str__(self) -> str:
        what = f"Column '{self.column}' (role \"{self.role}\", published as it is) {self.detail}"
        return f"{what}; accepted: {self.accepted}." if self.accepted else f"{what}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Examination:
    """What was found about the columns that are published as they are."""

    findings: tuple[Finding, ...]
    columns: tuple[str, ...]
    """The columns of role `other`, taken together."""
    alone: int
    """Records that no other record equals on all of these together; persons, where rows are people's."""
    records: int
    counted: Literal["records", "persons"] = "records"

    @property
    def refused(self) -> tuple[Finding, ...]:
        """Findings that stand in the way of a release."""
        return tuple(finding for finding in self.findings if finding.refused)

    def require(self, error: type[ShoalError] = InputError) -> Examination:
        """Itself, or an error that names every column that must not leave like this, and the ways out."""
        if not self.refused:
            return self
        told = " ".join(str(finding) for finding in self.refused)
        first = self.refused[0].column
        raise error(
            f"{told} Make it quasi, round, truncate or drop it, or, knowing what it tells, accept it with "
            f'accept = "reason" under [attributes.{first}].'
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: figures that anybody can count in the published columns themselves."""
        return {
            "findings": [finding.to_dict() for finding in self.findings],
            "together": {
                "columns": list(self.columns),
                "alone": self.alone,
                "records": self.records,
                "counted": self.counted,
            },
        }

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Examination:
        """From the plain values that a manifest holds."""
        together = told["together"]
        findings = tuple(Finding(**finding) for finding in told["findings"])
        return cls(findings, **{**together, "columns": tuple(together["columns"])})


def examine(table: pl.DataFrame, schema: Schema) -> Examination:
    """Examine every column that is published as it is, alone and together.

    `table` is the original or a masked table in polars; `schema` says which columns are `quasi`, `sensitive` and `other`.
    Columns that the table does not have are passed over. No value of the table stands in what comes back.
    """
    published = [
        (name, role) for role in ("other", "sensitive") for name in schema.named(role) if name in table.columns
    ]
    quasi = [name for name in schema.named("quasi") if name in table.columns]
    # Where rows are people's, a value that is in all rows of one person and in nobody else's finds that person.
    owner = table[schema.person].rank("dense") if schema.person in table.columns else None
    sample = _spaced(table.select(*quasi, *(name for name, _ in published)))
    known = {name: _codes(sample[name]) for name in quasi} if owner is None else {}
    findings = []
    for name, _ in published:
        attribute = schema.attributes[name]
        # Nobody knows a pseudonym of anybody; what it says about quasi-identifiers is another matter.
        own = _alone(spelled(table[name]), attribute, owner) if attribute.pseudonym is None else None
        if own is None and owner is not None:
            sample = _spaced(_once(table.select(*quasi, name), name, owner))
            known = {other: _codes(sample[other]) for other in quasi}
        found = own or _beside(sample, name, known, table.height, attribute)
        if found is not None:
            findings.append(found)
    others = tuple(n for n, role in published if role == "other" and schema.attributes[n].pseudonym is None)
    alone_together = alone(table.select(others).to_struct(""), owner) if others and table.height else 0
    if owner is None:
        return Examination(tuple(findings), others, alone_together, table.height)
    return Examination(tuple(findings), others, alone_together, owner.n_unique(), "persons")


def examine_counted(
    columns: Mapping[str, tuple[pl.Series, Codes]],
    schema: Schema,
    records: int,
    together: int,
    sample: pl.DataFrame | None = None,
) -> Examination:
    """`examine` for a table whose records are not at hand.

    - `columns`: per column that is published as it is its distinct values, and how many records have each.
    - `records`: how many there are; `together`: how many are alone on all columns of the role `other`.
    - `sample`: some records, evenly spaced, with the quasi-identifiers and these columns, to see what one says about the other.
    """
    known = {} if sample is None else {name: _codes(sample[name]) for name in schema.named("quasi")}
    findings = []
    for role in ("other", "sensitive"):
        for name in schema.named(role):
            attribute = schema.attributes[name]
            own = _alone(columns[name][0], attribute, None, columns[name][1]) if attribute.pseudonym is None else None
            found = own or (None if sample is None else _beside(sample, name, known, records, attribute))
            if found is not None:
                findings.append(found)
    others = tuple(name for name in schema.named("other") if schema.attributes[name].pseudonym is None)
    return Examination(tuple(findings), others, together if others else 0, records)


def _spaced(rows: pl.DataFrame) -> pl.DataFrame:
    """Evenly spaced rows, as many as are compared."""
    return spelled_out(rows.gather_every(max(1, rows.height // SAMPLE)) if rows.height else rows)


def _once(rows: pl.DataFrame, name: str, owner: pl.Series) -> pl.DataFrame:
    """Each value of a column once for each person who has it.

    A person's own rows agree with each other in everything that lasts, which says nothing about other people. What is missing
    in one row and known in another of the same person is known.
    """
    pairs = rows.with_columns(owner.alias(" owner")).unique([" owner", name], keep="first", maintain_order=True)
    known = pl.col(name).is_not_null()
    return pairs.filter(known | ~known.any().over(" owner")).drop(" owner")


def _alone(
    series: pl.Series, attribute: Attribute, owner: pl.Series | None, counts: Codes | None = None
) -> Finding | None:
    """What a column tells by itself; entries are records, or distinct values that stand for `counts` of them."""
    if owner is not None:
        # A value counts once a person, however many rows it stands in.
        once = pl.DataFrame({series.name: series, " owner": owner}).unique(maintain_order=True)
        series, owner = once[series.name], once[" owner"]
    everybody = len(series) if counts is None else int(counts.sum())
    records = int(series.is_not_null().sum() if counts is None else counts[series.is_not_null().to_numpy()].sum())
    looks = direct_identifier(series, counts)
    if looks is not None:
        return _finding(series.name, attribute, "identifier", records, everybody, f"looks like {looks}")
    people = everybody if owner is None else owner.n_unique()
    if people < ENOUGH:
        return None
    unique = alone(series, owner) if counts is None else int(np.count_nonzero(counts == 1))
    if unique < ALONE * people:
        return None
    found = "record" if owner is None else "person"
    only = f"{unique:,} of {people:,} are the only ones with their value"
    detail = f"tells {found}s apart: {only}, and whoever knows it finds the {found}"
    if attribute.role == "sensitive" and series.dtype.is_numeric():
        detail = (
            f"tells {found}s apart: {only}, as amounts are hardly ever equal; with round = 100 or so they tell less"
        )
    return _finding(series.name, attribute, "separates", unique, people, detail)


def _beside(
    sample: pl.DataFrame, name: str, known: Mapping[str, Codes], records: int, attribute: Attribute
) -> Finding | None:
    """What a column tells about a quasi-identifier, or a quasi-identifier about it."""
    if sample.height < ENOUGH or sample[name].n_unique() < 2:
        return None
    own = _codes(sample[name])
    for other, codes in known.items():
        for problem, share in (("determines", certainty(own, codes)), ("determined", certainty(codes, own))):
            if share >= CERTAIN:
                count = int(share * records)
                if problem == "determines":
                    detail = f"determines the quasi-identifier '{other}' in {_percent(share)} of what is uncertain without it"
                else:
                    detail = (
                        f"follows from the quasi-identifier '{other}' in {_percent(share)} of what is uncertain without it: "
                        "whoever knows that knows this, and can tell the records of a class apart"
                    )
                return _finding(name, attribute, problem, count, records, detail)  # type: ignore[arg-type]
        if in_step(sample[name], sample[other]):
            detail = f"rises and falls with the quasi-identifier '{other}', as good as its exact value"
            return _finding(name, attribute, "follows", records, records, detail)
    return None


def _finding(name: str, attribute: Attribute, problem: Problem, records: int, of: int, detail: str) -> Finding:
    refused = (attribute.role == "other" or problem == "identifier") and attribute.accept is None
    return Finding(name, attribute.role, problem, records, of, detail, refused, attribute.accept)


def alone(series: pl.Series, owner: pl.Series | None = None) -> int:
    """How many records no other record equals, or persons with a value that nobody else has; missing is a value that all who
    have it share.

    >>> alone(pl.Series(["a", "a", "b"])), alone(pl.Series(["a", "a", "b"]), pl.Series([1, 1, 2]))
    (1, 2)
    """
    if owner is None:
        return int(series.is_unique().sum()) if series.len() else 0
    pairs = pl.DataFrame({"value": series, "owner": owner}).unique()
    return pairs.filter(pl.col("value").is_unique())["owner"].n_unique()


def certainty(given: Codes, wanted: Codes) -> float:
    """How much of what is uncertain about `wanted` becomes certain with `given`: 0 nothing, 1 all of it.

    Each record's value is guessed as the most common one among the *other* records with the same `given` (Goodman and Kruskal's
    lambda, leaving one out), so that values which occur once explain nothing.

    >>> ages = np.array([30, 30, 41, 41, 52, 52]); decades = ages // 10
    >>> certainty(ages, decades), certainty(np.zeros(6, dtype=np.int64), decades)
    (1.0, 0.0)
    """
    width = int(wanted.max()) + 1
    pairs, pair_of, together = np.unique(given * width + wanted, return_inverse=True, return_counts=True)
    groups = pairs // width
    sizes = np.bincount(given)
    companions = sizes[given] > 1
    if np.count_nonzero(companions) < COVERED * len(given):
        return 0.0
    guessed = _left_one_out(groups, together)[pair_of]
    base = _left_one_out(np.zeros(width, dtype=np.int64), np.bincount(wanted, minlength=width))[wanted]
    total = int(np.count_nonzero(companions))
    right, before = int(guessed[companions].sum()), int(base[companions].sum())
    return 0.0 if before >= total else (right - before) / (total - before)


def _left_one_out(groups: Codes, counts: Codes) -> NDArray[np.bool_]:
    """Per value of a group: whether a record with it is guessed right from the others of its group.

    It is when its value is still the most common without the record itself; a tie is a wrong guess.
    """
    largest = np.zeros(int(groups.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(largest, groups, counts)
    second = np.zeros_like(largest)
    ties = np.bincount(groups, weights=counts == largest[groups], minlength=len(largest)).astype(np.int64)
    below = np.where(counts < largest[groups], counts, 0)
    np.maximum.at(second, groups, below)
    second = np.where(ties > 1, largest, second)
    return np.asarray((counts == largest[groups]) & (counts - 1 > second[groups]))


def in_step(one: pl.Series, other: pl.Series) -> bool:
    """Whether two columns of numbers are in the same or the opposite order, as good as exactly."""
    if not (_is_number(one) and _is_number(other)):
        return False
    both = pl.DataFrame({"one": one.to_physical(), "other": other.to_physical()}).drop_nulls()
    if both.height < ENOUGH or both["one"].n_unique() < ENOUGH or both["other"].n_unique() < ENOUGH:
        return False
    ranks = both.select(pl.all().rank("average") * 2).cast(pl.Int64).to_numpy()
    # Whole numbers, so that no machine adds them up differently.
    left, right = ranks[:, 0] - (both.height + 1), ranks[:, 1] - (both.height + 1)
    product = int((left * right).sum())
    return product * product >= IN_STEP**2 * int((left * left).sum()) * int((right * right).sum())


def _is_number(series: pl.Series) -> bool:
    return series.dtype.is_numeric() or series.dtype.is_temporal()


def _codes(series: pl.Series) -> Codes:
    """A number for each distinct value, missing included."""
    return series.rank("dense").fill_null(0).to_numpy().astype(np.int64)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
