"""People with several rows in a store: a record of the store is a person, and the rows hang below it.

Batches bring rows, each with a key of its own and a column that says whose it is. They are gathered here by person, so that all
the rest of a store (classes, journal, seals, snapshot, releases, forgetting) knows persons only: the key of a record is the
person's, and its columns are

- the quasi-identifiers, one value each (`within`, docs/persons.md),
- of every sensitive attribute the set of values over the person's rows, as they are published (`evolve/releases/people.py`),
- the rows as they are published, in an order that says nothing of when they came (`people.ROWS`),
- the rows as they came, with their keys (`VISITS`), which no release and no guard sees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from shoal.errors import InputError, raw
from shoal.evolve.releases.people import ROWS, written
from shoal.evolve.store.batch_input import KeyedRows, completed
from shoal.evolve.store.codebook import Books
from shoal.evolve.store.settings import TYPES, Settings, decode_rows, encode_rows
from shoal.persons import number_persons, settled
from shoal.schema import Attribute, Schema
from shoal.spelling import looks_of, means_missing
from shoal.transform import transformed

VISITS = "__visits"
"""The column with a person's rows as they came."""
KEY = "__key"
"""In these, the key of a row."""


def of_persons(rows: Schema) -> Schema:
    """The schema of a table with one line a person, from that of the rows; every kind must be settled."""
    found: dict[str, Attribute] = {}
    for name in rows.named("quasi"):
        found[name] = rows.attributes[name].model_copy(update={"within": None})
    for name in rows.named("sensitive"):
        found[name] = Attribute(role="sensitive", kind="category")  # type: ignore[call-arg]
    found[ROWS] = Attribute(role="other", kind="category")  # type: ignore[call-arg]
    return Schema(found, rows.folder, rows.missing)


def seen(frame: pl.DataFrame) -> pl.DataFrame:
    """A table without what no release and no guard sees."""
    return frame.drop(VISITS, strict=False)


def types_of_visits(settings: Settings) -> dict[str, str]:
    """The types of the rows as they are kept."""
    return {KEY: "text", **settings.row_types}


def gathered(visits: pl.DataFrame, rows: Schema) -> KeyedRows:
    """Persons in the order of their first row, from rows with their keys (`KEY`)."""
    person = str(rows.person)
    whose = number_persons(visits[person])
    table = transformed(visits.drop(KEY), rows)
    columns = list(settled(table, rows, whose))
    for name in rows.named("sensitive"):
        sets = _lists(_compared(table[name], rows.attributes[name]), whose.of_row, whose.count)
        columns.append(pl.Series(name, [written(one) for one in sets], dtype=pl.String))
    shown = table.select([*rows.named("sensitive"), *rows.named("other")])
    lines = encode_rows(shown) if shown.width else ["{}"] * table.height
    columns.append(_listed(ROWS, [sorted(one) for one in _lists(lines, whose.of_row, whose.count)]))
    columns.append(_listed(VISITS, _lists(encode_rows(visits), whose.of_row, whose.count)))
    return KeyedRows(visits[person].gather(whose.first).to_list(), pl.DataFrame(columns))


def spread(frame: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """The rows of persons as they came, with their keys."""
    return _decoded(frame[VISITS], types_of_visits(settings))[1]


def published(frame: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """The rows of persons as they are published but for the masking, with the person's place in the frame for their key."""
    schema = settings.given
    names = [*schema.named("sensitive"), *schema.named("other")]
    owner, rows = _decoded(frame[ROWS], {name: settings.row_types[name] for name in names})
    quasi = frame.select(schema.named("quasi"))[owner]
    whose = pl.Series(str(schema.person), owner, dtype=pl.Int64)
    found = pl.DataFrame([whose, *quasi, *rows])
    return found.select(list(schema.attributes))


def translated(
    present: pl.DataFrame, settings: Settings, given: Mapping[str, KeyedRows], leaving: Sequence[str]
) -> tuple[dict[str, KeyedRows], list[str]]:
    """A batch of rows as one of persons: those to insert and to update, and the keys of those who leave.

    `present` are all rows of the store. What the batch does not touch is not in it.
    """
    rows, person = settings.rows, str(settings.person)
    assert rows is not None
    there = {key: place for place, key in enumerate(present[KEY].to_list())}
    _require_places(settings, given, leaving, there)
    whose = present[person]
    out = [there[key] for key in leaving]
    touched, coming = {whose[place] for place in out}, [present.clear()]
    for name, batch in given.items():
        known = [row for row, key in enumerate(batch.keys) if key in there]
        places = [there[batch.keys[row]] for row in known]
        if known:
            changed = completed(batch.take(known), present[places].drop(KEY))
            out += places
            coming.append(_keyed(changed, settings))
            touched |= {whose[place] for place in places} | set(changed.frame[person].to_list())
        if name != "update":
            new = batch.take([row for row, key in enumerate(batch.keys) if key not in there])
            coming.append(_keyed(new, settings))
            touched |= set(new.frame[person].to_list())
    brought = pl.concat(coming)
    if brought.height:
        _require_known(brought, settings)
    kept = np.setdiff1d(np.arange(present.height), np.array(out, dtype=np.int64))
    # Rows keep the order in which they first came, whatever becomes of their values.
    place = np.array([*kept.tolist(), *(there.get(key, present.height) for key in brought[KEY])], dtype=np.int64)
    after = pl.concat([present[kept], brought])[np.argsort(place, kind="stable")]
    after = after.filter(pl.col(person).is_in(sorted(touched)))
    before = set(whose.filter(whose.is_in(sorted(touched))).to_list())
    people = gathered(after, rows) if after.height else KeyedRows([], pl.DataFrame())
    old = [row for row, key in enumerate(people.keys) if key in before]
    new_ones = [row for row, key in enumerate(people.keys) if key not in before]
    found = {name: people.take(some) for name, some in (("update", old), ("insert", new_ones)) if some}
    return found, sorted(before - set(people.keys))


def _require_places(
    settings: Settings, given: Mapping[str, KeyedRows], leaving: Sequence[str], there: Mapping[str, int]
) -> None:
    """Keys that should be in the store are, the others are not, and each is named once."""
    seen: set[str] = set()
    for name, keys in [*((name, batch.keys) for name, batch in given.items()), ("delete", leaving)]:
        for row, key in enumerate(keys):
            where = f"Column '{settings.key}', record {row + 1} of the batch: {raw(key, 'the key', 'key')}"
            if key in seen:
                raise InputError(f"{where} is named twice in one batch; do one thing with it at a time.")
            if name == "insert" and key in there:
                raise InputError(f"{where} is in the store already; update it, or leave it out.")
            if name in ("update", "delete") and key not in there:
                raise InputError(f"{where} is not in the store; insert it, or leave it out.")
            seen.add(key)


def _require_known(brought: pl.DataFrame, settings: Settings) -> None:
    """Values that the declared domains, taxonomies and lists allow, of the types that the store keeps, and whose they are."""
    person = str(settings.person)
    if brought[person].null_count():
        row = int(brought[person].is_null().arg_max() or 0)
        raise InputError(
            f"Column '{person}' says whose each row is, and record {row + 1} of the batch is nobody's; fill it in, or leave the "
            "row out."
        )
    Books(settings.given, settings.policy).learn(brought)


def _keyed(rows: KeyedRows, settings: Settings) -> pl.DataFrame:
    """Rows with their keys, in the types of the store."""
    columns = [pl.Series(KEY, rows.keys, dtype=pl.String)]
    for name, kind in settings.row_types.items():
        column = rows.frame[name] if rows.keys else pl.Series(name, [], dtype=TYPES[kind])
        if column.dtype != TYPES[kind]:
            broken = column.cast(pl.Float64).fill_null(0.0)
            row = int((broken != broken.round(0)).arg_max() or 0)
            if (broken != broken.round(0)).any():
                raise InputError(
                    f"Column '{name}', record {row + 1} of the batch: {raw(column[row], 'the value')} is not a whole number, as "
                    "this column holds in the store; correct it."
                )
            column = column.cast(TYPES[kind])
        columns.append(column)
    return pl.DataFrame(columns)


def _compared(column: pl.Series, attribute: Attribute) -> list[str | None]:
    """The values of a sensitive attribute as a reader tells them apart; None for those that say nothing."""
    texts = column.cast(pl.String).to_list()
    declared = attribute.order is not None or attribute.taxonomy is not None or attribute.categories is not None
    if attribute.kind != "category" or declared:
        return texts
    known = sorted({text for text in texts if text is not None})
    looks = zip(known, looks_of(known), means_missing(known), strict=True)
    found: dict[str | None, str | None] = {text: None if nothing else look for text, look, nothing in looks}
    return [found.get(text) for text in texts]


def _lists(values: Sequence[str | None], owner: np.ndarray, count: int) -> list[list[str]]:
    """What belongs to each of so many owners, in its order."""
    found: list[list[str]] = [[] for _ in range(count)]
    for one, value in zip(owner.tolist(), values, strict=True):
        if value is not None:
            found[one].append(value)
    return found


def _listed(name: str, lines: list[list[str]]) -> pl.Series:
    """Lines of JSON as a list of them."""
    return pl.Series(name, [f"[{','.join(one)}]" for one in lines], dtype=pl.String)


def _decoded(column: pl.Series, types: Mapping[str, str]) -> tuple[np.ndarray, pl.DataFrame]:
    """The lines of such lists as rows, and the place of the list that each is from."""
    texts = {"date": pl.String, "moment": pl.String}
    read = pl.Struct({name: texts.get(kind, TYPES[kind]) for name, kind in types.items()})
    if not types:  # nothing is published of the rows but that there are so many
        counts = column.str.count_matches("{}", literal=True).to_numpy()
        return np.repeat(np.arange(len(column)), counts), pl.DataFrame()
    lists = column.str.json_decode(pl.List(read))
    owner = np.repeat(np.arange(len(column)), lists.list.len().to_numpy() if len(column) else 0)
    lines = lists.explode() if len(column) else pl.Series([], dtype=read)
    return owner, decode_rows(lines.struct.json_encode().to_list(), types)
