"""Published values read back: the region that every cell of a masked table stands for.

`[17, 39]` and `17`, a node of a taxonomy, `{a, b}`, `*` for anything and an empty cell for missing become states of a
`Space`, as classes have them. Two ways: against the domains of the original table (`read_against`), or, where nobody
has the original, in a space made of all the tables at hand (`common_space`). `relate` then says which regions meet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.columns import declared_taxonomy, is_named, texts
from shoal.errors import ConfigError, InputError, because, raw
from shoal.progress import Progress, Told
from shoal.schema import Attribute, Schema, TaxonomySource
from shoal.space import EPOCH, MISSING_MEMBER, SUPPRESSED, Domain, Interval, Set, Space, States, Tree
from shoal.taxonomy import Taxonomy

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Ends = tuple[float, float]
Relation = Literal["meet", "inside"]

INTERVAL = re.compile(r"\[(.+), (.+)([\])])")
CALENDAR = re.compile(r"(\d{4})-Q([1-4])|(\d{3})0s|(\d{4})-(\d{2})|(\d{4})")
LAST = "\U0010ffff"
# One label of a set: in quotes where it could be taken for something else.
MEMBER = r'"(?:[^"]|"")*"|[^",]+'
QUOTED = re.compile(rf"(?:{MEMBER})(?:, (?:{MEMBER}))*")

# Bits of a piece of the matrix of persons × classes; pieces keep memory small.
BITS = 2**28


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinct published texts of one quasi-identifier (None for missing) and which one each row has."""

    name: str
    texts: tuple[str | None, ...]
    of_row: Ints
    numeric: bool
    """Written as numbers (`age_min` and `age_max`, or a plain number), where suppressed cells are empty."""

    def missing(self) -> NDArray[np.bool_]:
        """Rows without a value."""
        return np.array([text is None for text in self.texts], dtype=bool)[self.of_row]

    def all_suppressed(self) -> NDArray[np.bool_]:
        """Rows where this cell may be that of a suppressed record."""
        flags = [text == SUPPRESSED or (text is None and self.numeric) for text in self.texts]
        return np.array(flags, dtype=bool)[self.of_row]


def published_cells(table: pl.DataFrame, name: str) -> Cells:
    """The cells of one quasi-identifier, whether published as one column or as `name_min` and `name_max`."""
    if name in table.columns:
        series = table[name]
        if series.dtype == pl.Datetime:
            series = series.cast(pl.Date)
        keys = pl.DataFrame({"text": series})
        numeric = series.dtype.is_numeric() or series.dtype == pl.Date
    else:
        keys = pl.DataFrame({"low": table[f"{name}_min"], "high": table[f"{name}_max"]})
        numeric = True
    distinct = keys.unique(maintain_order=True).with_row_index("cell")
    of_row = keys.join(distinct, on=keys.columns, how="left", nulls_equal=True, maintain_order="left")["cell"]
    columns = [_labels(distinct[column]) for column in keys.columns]
    found = columns[0] if len(columns) == 1 else [_joined(a, b) for a, b in zip(*columns, strict=True)]
    return Cells(name, tuple(found), of_row.to_numpy().astype(np.int64), numeric)


def suppressed_rows(cells: Sequence[Cells]) -> NDArray[np.bool_]:
    """Rows of which nothing is published. A class generalized to the top in every attribute says no more than that."""
    return np.asarray(np.logical_and.reduce([column.all_suppressed() for column in cells]))


def read_against(domains: Sequence[Domain], cells: Sequence[Cells]) -> tuple[tuple[Domain, ...], list[Ints], list[str]]:
    """States of published cells in the original's domains, one array an attribute, and the attributes of averages.

    Numbers need not occur in the original, so its intervals come back with all published ends among their values.
    A column with single numbers that nobody has holds averages (means or midpoints), which are no regions.
    """
    suppressed = suppressed_rows(cells)
    extended: list[Domain] = []
    states: list[Ints] = []
    averaged = []
    for domain, column in zip(domains, cells, strict=True):
        _refuse_missing(domain, column, suppressed)
        if isinstance(domain, Interval):
            ends = _read(column, _reader_of_ends(domain))
            if column.numeric and domain.has_missing and len(domain.values) > 1:
                # Two columns of numbers cannot show "anything"; it is written as the whole observed range.
                observed = (float(domain.values[0]), float(domain.values[-1]))
                ends = [SUPPRESSED if pair == observed else pair for pair in ends]
            wider = _extended(domain, [pair for pair in ends if isinstance(pair, tuple)])
            known = set(domain.values.tolist())
            if any(isinstance(pair, tuple) and pair[0] == pair[1] and pair[0] not in known for pair in ends):
                averaged.append(column.name)
            extended.append(wider)
            states.append(_code_ends(wider, ends)[column.of_row])
        elif isinstance(domain, Tree):
            read = _read(column, _reader_of_nodes(domain.taxonomy))
            extended.append(domain)
            states.append(_code_nodes(domain, read)[column.of_row])
        else:
            members = _read(column, _reader_of_sets(domain.labels, closed=True))
            extended.append(domain)
            states.append(_code_sets(domain, members)[column.of_row])
    return tuple(extended), states, averaged


def common_space(
    tables: Sequence[pl.DataFrame], schema: Schema, names: Sequence[str], unknown: Sequence[bool]
) -> tuple[Space, list[States]]:
    """A space in which the cells of all the tables are regions, and their states, one row a row of each table.

    `unknown` says of each table whether a missing value is not known (it may be anything, as in what an intruder
    has) or a value of its own (as in a release). Persons are rows with single values; nothing else sets them apart.
    """
    cells = [[published_cells(table, name) for name in names] for table in tables]
    hidden = [suppressed_rows(columns) for columns in cells]
    domains: list[Domain] = []
    parts: list[list[States]] = [[] for _ in tables]
    for a, name in enumerate(names):
        axis = [columns[a] for columns in cells]
        domain, states = _common_axis(axis, schema.attributes[name], schema)
        for t, (column, state) in enumerate(zip(axis, states, strict=True)):
            anything = hidden[t] | column.missing() if unknown[t] else hidden[t]
            parts[t].append(np.where(anything[:, None], _everything(domain), state))
        domains.append(domain)
    return Space(tuple(domains), np.ones(len(domains)), "ncp"), [np.concatenate(part, axis=1) for part in parts]


def relate(
    space: Space, these: States, those: States, relation: Relation = "meet", progress: Told | None = None
) -> csr_array:
    """Which regions meet (have a point in common), or which of `these` lie inside `those`; a sparse matrix of ones.

    Bits of all `those` are kept for every distinct region of one attribute and joined with AND, so the work is
    rows × attributes × classes / 64 and nothing is ever compared pair by pair in Python.
    """
    from scipy.sparse import csr_array

    told = Progress.of(progress)
    distinct, back = np.unique(these, axis=0, return_inverse=True)
    step = max(1, BITS // max(1, len(those)))
    rows, columns = [], []
    for begin in range(0, len(distinct), step):
        told(begin / len(distinct))
        piece = distinct[begin : begin + step]
        bits: NDArray[np.uint8] | None = None
        for a, domain in enumerate(space.domains):
            slots = slice(int(space.slots[a]), int(space.slots[a + 1]))
            own, which = np.unique(piece[:, slots], axis=0, return_inverse=True)
            packed = _packed(domain, own, those[:, slots], relation, told)[which.ravel()]
            bits = packed if bits is None else bits & packed
        if bits is not None:
            found, at = np.nonzero(np.unpackbits(bits, axis=1, count=len(those)))
            rows.append(found + begin)
            columns.append(at)
    indices = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
    owners = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    shape = (len(distinct), len(those))
    matrix = csr_array((np.ones(len(indices), dtype=np.int64), (owners, indices)), shape=shape)
    return csr_array(matrix[back.ravel()])


def _packed(domain: Domain, own: States, those: States, relation: Relation, progress: Progress) -> NDArray[np.uint8]:
    """One row of bits a region: which of `those` it meets or lies inside of."""
    result = np.zeros((len(own), (len(those) + 7) // 8), dtype=np.uint8)
    for row, region in enumerate(own):
        progress.check()
        if isinstance(domain, Set):
            if relation == "meet":
                hit = ((those & region) != 0).any(axis=1)
            else:
                hit = ((~those & region) == 0).all(axis=1)
        elif relation == "meet":
            hit = (those[:, 0] <= region[1]) & (those[:, 1] >= region[0])
        else:
            hit = (those[:, 0] <= region[0]) & (those[:, 1] >= region[1])
        result[row] = np.packbits(hit)
    return result


def _common_axis(cells: Sequence[Cells], attribute: Attribute, schema: Schema) -> tuple[Domain, list[Ints]]:
    """One attribute's domain made of all its cells, and the cells' states per table."""
    source = attribute.taxonomy
    name = cells[0].name
    if is_named(source):
        empty = pl.DataFrame({name: pl.Series([], dtype=pl.String)})
        tree = Tree(declared_taxonomy(empty, empty[name], "category", name, schema).with_missing(), has_missing=True)
        reader = _reader_of_nodes(tree.taxonomy)
        return tree, [_code_nodes(tree, _read(column, reader))[column.of_row] for column in cells]
    if isinstance(source, TaxonomySource) and source.prefix is not None:
        return _prefix_axis(cells)
    kind = attribute.kind or _guess(cells, attribute)
    if kind == "category" and attribute.order is None:
        if any("+" in (text or "") and (text or "").startswith("{") for column in cells for text in column.texts):
            raise InputError(
                f"Column '{name}' has an automatic taxonomy whose groups its labels do not spell out; write the "
                f"taxonomy to a file, name it under [attributes.{name}] taxonomy, and mask again."
            )
        members = [_read(column, _reader_of_sets((), closed=False)) for column in cells]
        labels = sorted(
            {label for table in members for cell in table if isinstance(cell, list) for label in cell if label}
        )
        whole = Set(tuple(labels), has_missing=True)
        return whole, [_code_sets(whole, cell)[column.of_row] for cell, column in zip(members, cells, strict=True)]
    order = tuple(attribute.order) if attribute.order is not None else None
    frame = Interval(np.zeros(0), 0.0, labels=order, is_date=kind == "date")
    ends = [_read(column, _reader_of_ends(frame)) for column in cells]
    numbers = [number for table in ends for pair in table if isinstance(pair, tuple) for number in pair]
    domain = Interval(np.unique(np.array(numbers, dtype=np.float64)), 1.0, has_missing=True)
    return domain, [_code_ends(domain, pairs)[column.of_row] for pairs, column in zip(ends, cells, strict=True)]


def _prefix_axis(cells: Sequence[Cells]) -> tuple[Domain, list[Ints]]:
    """Strings in alphabetical order: those that begin alike lie side by side, so `41***` is a range."""

    def ends(text: str) -> tuple[str, str]:
        kept = text.rstrip("*")
        return (kept, kept + LAST) if kept != text else (text, text)

    read = [_read(column, ends) for column in cells]
    keys = sorted({key for table in read for pair in table if isinstance(pair, tuple) for key in pair})
    rank = {key: float(i) for i, key in enumerate(keys)}
    domain = Interval(np.arange(len(keys), dtype=np.float64), 1.0, has_missing=True)
    ranked = [[(rank[c[0]], rank[c[1]]) if isinstance(c, tuple) else c for c in table] for table in read]
    return domain, [_code_ends(domain, pairs)[column.of_row] for pairs, column in zip(ranked, cells, strict=True)]


def _read(column: Cells, reader: Callable[[str], Any]) -> list[Any]:
    """Each text's meaning; None and `*` stay as they are. What cannot be read is an error that shows it."""
    found = []
    for text in column.texts:
        if text is None or text == SUPPRESSED:
            found.append(text)
            continue
        try:
            found.append(reader(text))
        except (ValueError, KeyError, ConfigError) as problem:
            detail = because(problem) if isinstance(problem, ConfigError) else ""
            raise InputError(
                f"Column '{column.name}': {raw(text, 'a cell')} is neither a value nor a generalization that the configuration "
                f"knows{detail}; write [17, 39], a node of the taxonomy, {{a, b}}, or * for suppressed."
            ) from None
    return found


def _reader_of_ends(domain: Interval) -> Callable[[str], Ends]:
    labels = domain.labels
    if labels is not None:
        place = {label: float(i) for i, label in enumerate(labels)}
        return lambda text: _labelled_ends(text, place)
    if domain.is_date:
        return lambda text: _bracketed(text, _calendar)
    return lambda text: _bracketed(text, lambda part: (_finite(part),) * 2)


def _bracketed(text: str, ends: Callable[[str], Ends]) -> Ends:
    found = INTERVAL.fullmatch(text)
    if not found:
        return ends(text)
    low, high = ends(found[1])[0], ends(found[2])[1]
    if low > high:
        raise ValueError(text)
    return low, float(np.nextafter(high, -np.inf)) if found[3] == ")" else high


def _labelled_ends(text: str, place: Mapping[str, float]) -> Ends:
    """Labels may hold commas themselves, so every comma is tried."""
    if text in place:
        return place[text], place[text]
    quoted = [label for label in _unquoted(text) if label is not None]
    if quoted and all(label in place for label in quoted) and place[quoted[0]] <= place[quoted[-1]]:
        return place[quoted[0]], place[quoted[-1]]
    inner = text[1:-1].split(", ") if text.startswith("[") and text.endswith("]") else []
    for cut in range(1, len(inner)):
        low, high = ", ".join(inner[:cut]), ", ".join(inner[cut:])
        if low in place and high in place and place[low] <= place[high]:
            return place[low], place[high]
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    if not np.isfinite(number):
        raise ValueError(text)
    return number


def _calendar(text: str) -> Ends:
    """A day, month, quarter, year or decade as its first and last day, counted from 1970."""
    found = CALENDAR.fullmatch(text)
    if not found:
        day = float((date.fromisoformat(text) - EPOCH).days)
        return day, day
    quarter_year, quarter, decade, month_year, month, year = found.groups()
    if decade:
        first, months = date(int(decade) * 10, 1, 1), 120
    elif quarter:
        first, months = date(int(quarter_year), 3 * int(quarter) - 2, 1), 3
    elif month:
        first, months = date(int(month_year), int(month), 1), 1
    else:
        first, months = date(int(year), 1, 1), 12
    beyond = first.month - 1 + months
    after = date(first.year + beyond // 12, beyond % 12 + 1, 1)
    return float((first - EPOCH).days), float((after - EPOCH).days - 1)


def _reader_of_nodes(tree: Taxonomy) -> Callable[[str], int]:
    # A leaf that shares its label with the node above it was published as the leaf.
    return lambda text: tree.leaf_codes[text] if text in tree.leaf_codes else tree.node(text)


def _reader_of_sets(labels: Sequence[str], *, closed: bool) -> Callable[[str], list[str | None]]:
    """Members of a set, None for missing among them; `closed` when only `labels` can occur."""
    known = set(labels)

    def read(text: str) -> list[str | None]:
        quoted = _unquoted(text)
        if quoted and (not closed or all(one is None or one in known for one in quoted)):
            return quoted
        if text in known or not (text.startswith("{") and text.endswith("}")):
            if closed and text not in known:
                raise ValueError(text)
            return [text]
        parts = text[1:-1].split(", ")
        members = _segments(parts, known) if closed else list(parts)
        return [None if member == MISSING_MEMBER else member for member in members]

    return read


def _unquoted(text: str) -> list[str | None]:
    """The labels of a published text some of which are in quotes, None for missing; nothing where none is.

    >>> _unquoted('"{a, b}"'), _unquoted('{"a, b", c}'), _unquoted("{a, b}")
    (['{a, b}'], ['a, b', 'c'], [])
    """
    inner = text[1:-1] if text[:1] in ("{", "[") and text[-1:] in ("}", "]") else text
    if '"' not in inner or not QUOTED.fullmatch(inner):
        return []
    parts = re.findall(rf"(?:^|, )({MEMBER})", inner)
    plain = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]
    return [None if part == MISSING_MEMBER else label for part, label in zip(parts, plain, strict=True)]


def _segments(parts: list[str], known: set[str]) -> list[str]:
    """The members of a set; a label that holds commas was split into several parts and is put together again."""
    ends: list[list[str] | None] = [[], *([None] * len(parts))]
    for stop in range(1, len(parts) + 1):
        for start in range(stop - 1, -1, -1):
            before, label = ends[start], ", ".join(parts[start:stop])
            if before is not None and (label in known or (label == MISSING_MEMBER and stop == len(parts))):
                ends[stop] = [*before, label]
                break
    members = ends[-1]
    if members is None:
        raise ValueError(", ".join(parts))
    return members


def _extended(domain: Interval, ends: Sequence[Ends]) -> Interval:
    if domain.labels is not None:
        return domain
    values = np.union1d(domain.values, np.array([number for pair in ends for number in pair], dtype=np.float64))
    # With a code for missing, "anything" is a state of its own and loses everything.
    return Interval(values, domain.width, has_missing=True, is_date=domain.is_date)


def _code_ends(domain: Interval, ends: Sequence[Ends | str | None]) -> Ints:
    codes = np.zeros((len(ends), 2), dtype=np.int64)
    everything = _everything(domain)
    for row, pair in enumerate(ends):
        if isinstance(pair, tuple):
            codes[row] = np.searchsorted(domain.values, pair)
        else:
            codes[row] = everything if pair == SUPPRESSED else domain.missing_code
    return codes


def _code_nodes(domain: Tree, nodes: Sequence[int | str | None]) -> Ints:
    tree = domain.taxonomy
    codes = np.zeros((len(nodes), 2), dtype=np.int64)
    for row, node in enumerate(nodes):
        if isinstance(node, int):
            codes[row] = tree.first[node], tree.last[node]
        else:
            codes[row] = _everything(domain) if node == SUPPRESSED else domain.missing_code
    return codes


def _code_sets(domain: Set, members: Sequence[list[str | None] | str | None]) -> Ints:
    place: dict[str | None, int] = {label: code for code, label in enumerate(domain.labels)}
    place[None] = domain.missing_code
    words = np.zeros((len(members), domain.words), dtype=np.uint64)
    for row, cell in enumerate(members):
        if cell == SUPPRESSED:
            words[row] = _everything(domain).view(np.uint64)
            continue
        for label in cell if isinstance(cell, list) else [None]:
            words[row, place[label] >> 6] |= np.uint64(1 << (place[label] & 63))
    return words.view(np.int64)


def _everything(domain: Domain) -> Ints:
    """The state of a suppressed cell."""
    if isinstance(domain, Set):
        bits = [
            sum(1 << (code & 63) for code in range(64 * w, min(64 * w + 64, domain.size))) for w in range(domain.words)
        ]
        return np.array(bits, dtype=np.uint64).view(np.int64)
    return np.array([0, max(0, domain.size - 1)], dtype=np.int64)


def _refuse_missing(domain: Domain, column: Cells, suppressed: NDArray[np.bool_]) -> None:
    missing = column.missing() & ~suppressed
    if missing.any() and not domain.has_missing:
        raise InputError(
            f"Column '{column.name}' of the masked table has missing values ({int(missing.sum())} classes) and the "
            "original has none; write suppressed cells as *, or check that both tables belong together."
        )


def _guess(cells: Sequence[Cells], attribute: Attribute) -> str:
    """What an undeclared column is: numbers when all its cells read as numbers, else categories."""
    source = attribute.taxonomy
    if isinstance(source, TaxonomySource):
        return "date" if source.dates is not None else "number"
    shown = {text for column in cells for text in column.texts if text is not None and text != SUPPRESSED}
    for kind, is_date in (("number", False), ("date", True)):
        reader = _reader_of_ends(Interval(np.zeros(0), 0.0, is_date=is_date))
        try:
            for text in shown:
                reader(text)
        except ValueError:
            continue
        return kind
    return "category"


def _labels(series: pl.Series) -> list[str | None]:
    return texts(series, "number" if series.dtype.is_numeric() else "category").to_list()


def _joined(low: str | None, high: str | None) -> str | None:
    if low is None or high is None:
        return None
    return low if low == high else f"[{low}, {high}]"
