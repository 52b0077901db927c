"""Any masked table measured against its original, whoever made it and in whatever order its records are.

The loss of a class follows from what it publishes and from the original's domains; nothing else is needed, so the
records of the two tables need not be matched. What does need the members of a class (distinct values below a node,
squared errors) is measured where the order was kept (`aligned`), and is NaN with a note where it was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal import exact
from shoal.errors import InputError, raw, require_a
from shoal.measures.loss import ClassLosses, Measures, distinct_losses, heights, sse, state_losses, summarize
from shoal.measures.regions import Cells, Ints, published_cells, read_against, suppressed_rows
from shoal.microdata import Microdata
from shoal.models.parameters import require
from shoal.partition import Partition
from shoal.schema import Schema
from shoal.space import Interval, Set, Space, States, Tree
from shoal.verifier import derive_classes, published_quasi

__all__ = ["MaskedMeasures", "measure_masked"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Published:
    """The classes of a masked table as states of the original's domains.

    `space` knows every published number; `codes` are the original's records in it. `labels` is the class of each
    masked record, -1 for a suppressed one.
    """

    space: Space
    states: States
    labels: Ints
    sizes: Ints
    suppressed: int
    codes: NDArray[np.int64]
    cells: tuple[Cells, ...]
    averaged: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class MaskedMeasures:
    """What `measure_masked` found: totals (`measures`), losses class by class (`classes`), and what could not be
    measured (`notes`).

    >>> import polars as pl, shoal
    >>> from shoal.measures.masked import MaskedMeasures
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30]}), {"age": {"role": "quasi"}})
    >>> found: MaskedMeasures = shoal.measure_masked(data, pl.DataFrame({"age": ["[20, 30]"] * 2}), aligned=True)
    >>> found.to_dict()["sse"], found.notes
    (100.0, ())
    """

    measures: Measures
    classes: ClassLosses
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self.measures.to_dict(), "notes": list(self.notes)}


def measure_masked(
    original: Microdata, masked: pl.DataFrame, k: int = 1, *, aligned: bool = False, averages: bool = False
) -> MaskedMeasures:
    """Every loss measure of a masked table, whoever made it and in whatever order its records are.

    - `original`: the table it was made from.
    - `masked`: the published table. Records that are not in it, or of which it shows nothing, are suppressed.
    - `k`: what `avg` and `dm` measure class sizes against; 1 by default.
    - `aligned`: says that both tables have the same records in the same order; every published value must then cover
      its original. False by default.
    - `averages`: says that published values are means and modes, as microaggregation makes them, even where no number
      shows it. False by default.

    Returns the measures, the losses class by class, and notes about what could not be measured and why.

    >>> import polars as pl, shoal
    >>> data = shoal.Microdata.from_frame(pl.DataFrame({"age": [20, 30, 40, 60]}), {"age": {"role": "quasi"}})
    >>> masked = pl.DataFrame({"age": ["[40, 60]", "[20, 30]", "[40, 60]", "[20, 30]"]})
    >>> found = shoal.measure_masked(data, masked)
    >>> found.measures.ncp, found.notes
    (0.375, ('sse needs to know which records are in a class, or a file of class means.',))
    """
    require_a("original", original, Microdata, "a Microdata")
    require_a("masked", masked, pl.DataFrame, "a polars frame")
    require("measure", "k", k, 1, whole=True)
    for what, switch in (("aligned", aligned), ("averages", averages)):
        require_a(what, switch, bool, "True or False")
    masked = one_each(original, masked, aligned=aligned)
    found = read_published(original, masked)
    if found.averaged or averages:
        return _of_averages(original, masked, found, k, averages=averages)
    partition = None
    if aligned:
        _require_cover(original, masked, found)
        partition = Partition(found.labels.astype(np.int32))
    cells = state_losses(found.space, found.states)
    cells["ncp_distinct"] = distinct_losses(original, partition) if partition else _distinct(original, found)
    losses = _class_losses(original, found, cells)
    notes = _notes(original, masked)
    error = sse(original, partition) if partition else float("nan")
    if np.isnan(cells["ncp_distinct"]).any():
        notes.append(
            "ncp_distinct needs to know which records are in a class, as in files in their original order (aligned)."
        )
    if partition is None and any(_is_number(domain) for domain in original.domains):
        notes.append("sse needs to know which records are in a class, or a file of class means.")
    return MaskedMeasures(summarize(losses, k, error, suppressed=_form(found)), losses, tuple(notes))


def one_each(original: Microdata, masked: pl.DataFrame, *, aligned: bool = False) -> pl.DataFrame:
    """One published row for each person, where people have several: a person's rows publish the same quasi-identifiers."""
    if original.persons is None:
        return masked
    if original.schema.person in masked.columns:
        return masked.unique(str(original.schema.person), keep="first", maintain_order=True)
    if aligned and masked.height == len(original.persons.of_row):
        return masked[original.persons.first]
    if masked.height <= original.n:
        return masked
    raise InputError(
        f"The original has {original.n:,} persons, and {masked.height:,} masked rows do not say whose they are; publish a token "
        f'(publish = "token" under [attributes.{original.schema.person}]), or measure tables in the same order as aligned.'
    )


def read_published(original: Microdata, masked: pl.DataFrame) -> Published:
    """Group a masked table by its published quasi-identifiers and read them in the original's domains."""
    # Losses concern the quasi-identifiers alone; what else the table shows is for the verifier to judge.
    attributes = {name: original.schema.attributes[name] for name in original.quasi}
    columns = published_quasi(masked, Schema(attributes, original.schema.folder))
    if masked.height > original.n:
        raise InputError(
            f"The masked table has {masked.height} records and the original {original.n}; they do not belong together."
        )
    labels, groups = derive_classes(masked, columns)
    cells = tuple(published_cells(groups, name) for name in original.quasi)
    domains, states, averaged = read_against(original.domains, cells)
    hidden = suppressed_rows(cells)
    space = Space(domains, original.space("il").weights, "il")
    shown = np.flatnonzero(~hidden)
    number = np.full(len(hidden), -1, dtype=np.int64)
    number[shown] = np.arange(len(shown))
    sizes = np.bincount(labels, minlength=len(hidden)).astype(np.int64)
    return Published(
        space=space,
        states=np.concatenate(states, axis=1)[shown],
        labels=number[labels],
        sizes=sizes[shown],
        suppressed=original.n - int(sizes[shown].sum()),
        codes=_recoded(original, space),
        cells=tuple(Cells(c.name, c.texts, c.of_row[shown], c.numeric) for c in cells),
        averaged=tuple(averaged),
    )


def covered(found: Published) -> NDArray[np.bool_]:
    """Per record and attribute, whether the published value of an aligned table covers the original's."""
    rows = np.flatnonzero(found.labels >= 0)
    states, codes = found.states[found.labels[rows]], found.codes[rows]
    result = np.ones((len(found.labels), codes.shape[1]), dtype=bool)
    for a, domain in enumerate(found.space.domains):
        slot, code = int(found.space.slots[a]), codes[:, a]
        if isinstance(domain, Set):
            words = states[np.arange(len(rows)), slot + (code >> 6)].view(np.uint64)
            result[rows, a] = words >> (code & 63).astype(np.uint64) & np.uint64(1) == 1
        else:
            result[rows, a] = (states[:, slot] <= code) & (code <= states[:, slot + 1])
    return result


def _recoded(original: Microdata, space: Space) -> NDArray[np.int64]:
    """The original's codes in domains that hold more numbers than its own."""
    codes = original.codes.astype(np.int64)
    for a, (old, new) in enumerate(zip(original.domains, space.domains, strict=True)):
        if isinstance(old, Interval) and isinstance(new, Interval) and new is not old:
            place = np.append(np.searchsorted(new.values, old.values), new.missing_code)
            codes[:, a] = place[original.codes[:, a]]
    return codes


def _require_cover(original: Microdata, masked: pl.DataFrame, found: Published) -> None:
    if masked.height != original.n:
        raise InputError(
            f"The masked table has {masked.height} records and the original {original.n}, so they are not in the same "
            "order; measure them without aligned."
        )
    good = covered(found)
    if good.all():
        return
    row, a = np.argwhere(~good)[0]
    name = original.quasi[int(a)]
    text = found.cells[int(a)].texts[int(found.cells[int(a)].of_row[found.labels[row]])]
    raise InputError(
        f"Column '{name}', record {int(row) + 1}: {raw(text, 'what is published', 'the published')} does not cover the "
        f"original{raw(original.frame[name][int(row)], '', ' =')}; they are in different orders or do not belong together."
    )


def _distinct(original: Microdata, found: Published) -> Floats:
    """Distinct values as far as published values tell: sets and numbers do, nodes above the leaves do not."""
    result = found.space.losses(found.states, "ncp")
    for a, (old, domain) in enumerate(zip(original.domains, found.space.domains, strict=True)):
        if isinstance(domain, Tree):
            slot = int(found.space.slots[a])
            inner = found.states[:, slot] < found.states[:, slot + 1]
            result[:, a] = np.where(inner, np.nan, 0.0)
        elif isinstance(domain, Set):
            result[:, a] *= old.size / len(np.unique(original.codes[:, a]))
    return result


def _of_averages(
    original: Microdata, masked: pl.DataFrame, found: Published, k: int, *, averages: bool
) -> MaskedMeasures:
    """Averages are no regions: only the sizes of the classes and the squared error can be measured."""
    unknown = np.full((len(found.sizes), len(found.cells)), np.nan)
    names = ("il", "ncp", "ncp_published", "granularity", "distortion", "ncp_distinct")
    losses = _class_losses(original, found, dict.fromkeys(names, unknown))
    error, why = _sse_of_means(original, masked)
    which = f"Column '{found.averaged[0]}' holds" if found.averaged and not averages else "The quasi-identifiers hold"
    notes = _notes(original, masked)
    notes.append(f"{which} averages, not regions: il, ncp, granularity and distortion do not apply to them.")
    if why:
        notes.append(why)
    return MaskedMeasures(summarize(losses, k, error, suppressed=_form(found)), losses, tuple(notes))


def _sse_of_means(original: Microdata, masked: pl.DataFrame) -> tuple[float, str | None]:
    """100·SSE/SST of class means in any order: Σ(x − mean of class)² = Σx² − Σ(mean of class)², both centred."""
    shares = []
    for a, (name, domain) in enumerate(zip(original.quasi, original.domains, strict=True)):
        if not _is_number(domain) or not isinstance(domain, Interval):
            continue
        codes = original.codes[:, a]
        values = domain.values[codes[codes < domain.missing_code]]
        centre = exact.mean(values)
        spread = exact.total((values - centre) ** 2)
        if spread <= 0:
            continue
        shown = masked[name] if name in masked.columns else None
        if shown is not None and shown.dtype == pl.Date:
            shown = shown.cast(pl.Int32)
        if shown is None or not shown.dtype.is_numeric():
            return float("nan"), f"sse needs one number in every cell, and column '{name}' has others."
        means = shown.drop_nulls().cast(pl.Float64).to_numpy()
        scale = max(float(np.abs(values).max()), 1.0)
        if len(means) != len(values) or abs(exact.mean(means) - centre) > 1e-6 * scale:
            return float("nan"), (
                f"sse needs class means, and those of column '{name}' do not have the mean of the original "
                "(midpoints, rounding, or suppressed records)."
            )
        shares.append(1 - exact.total((means - centre) ** 2) / spread)
    return (100 * exact.mean(shares), None) if shares else (float("nan"), None)


def _class_losses(original: Microdata, found: Published, cells: dict[str, Floats]) -> ClassLosses:
    return ClassLosses(
        tuple(original.quasi), found.space.weights, heights(found.space), found.sizes, found.suppressed, cells
    )


def _form(found: Published) -> Any:
    return "mask" if (found.labels < 0).any() else "drop"


def _notes(original: Microdata, masked: pl.DataFrame) -> list[str]:
    lost = original.n - masked.height
    if not lost:
        return []
    return [f"{lost} records of the original are not in the masked table and count as suppressed."]


def _is_number(domain: object) -> bool:
    return isinstance(domain, Interval) and domain.labels is None
