"""People with several rows in a store: a person is one of k however often they came, and no later visit gives them away."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.evolve.store.people import POLICY, SCHEMA, Register, table
from tests.reference.people import exposed

import shoal
from shoal.errors import ConfigError, InputError, ShoalError, UnsupportedError
from shoal.evolve.store.sync import sync
from shoal.io import write_sql

# Two classes of four by age; with k = p = 2.
FIRST = (
    (0, "a", 20, "flu"), (1, "b", 21, "cold"), (2, "c", 22, "flu"), (3, "d", 23, "cold"),
    (4, "e", 60, "ulcer"), (5, "f", 61, "gout"), (6, "g", 62, "ulcer"), (7, "h", 63, "gout"),
)  # fmt: skip
FOUR = {"policy": shoal.KAnonymity(4) & shoal.PSensitive(2, "ill"), "k": 4}


def test_one_person_with_many_visits_is_one_of_k(tmp_path: Path) -> None:
    many = [(10 + i, "x", 40, ill) for i, ill in enumerate(["flu", "cold", "ulcer", "gout", "flu"])]
    with pytest.raises(ShoalError, match="needs at least 2 records and the table has 1"):
        Register(tmp_path, *many)
    store = Register(tmp_path, *FIRST, *many)
    store.release()
    assert store.safe() and ("cold", "flu", "flu", "gout", "ulcer") in store.shown()
    # Alone with so many rows, and new: nobody to hide behind.
    store.insert(*((30 + i, "y", 90, ill) for i, ill in enumerate(["flu", "cold", "ulcer"])))
    assert store.release().waiting["insertions"] == 1
    store.insert((40, "z", 91, "gout"))
    assert store.release().waiting["insertions"] == 0
    assert store.safe()


def test_everybody_having_a_value_in_common_is_not_two_values(tmp_path: Path) -> None:
    """{flu}, {flu, cold}: everybody has flu."""
    store = Register(tmp_path, *FIRST)
    store.release()
    store.insert((20, "x", 40, "flu"), (21, "y", 41, "flu"), (22, "y", 41, "cold"))
    assert store.release().waiting["insertions"] == 2
    store.insert((23, "z", 42, "ulcer"))
    assert store.release().waiting["insertions"] == 0
    assert store.safe()


def test_a_further_visit_alone_waits(tmp_path: Path) -> None:
    """Who knows that only she came again would read her new illness off the row that is more."""
    store = Register(tmp_path, *FIRST, **FOUR)
    store.release()
    store.insert((20, "a", 20, "HIV"))
    assert store.release().waiting["updates"] == 1
    assert store.safe() and not any("HIV" in line for line in store.shown())
    for visit in ((21, "b", 21, "HIV"), (22, "c", 22, "mumps")):
        store.insert(visit)
        assert store.release().waiting["updates"] > 1
    store.insert((23, "d", 23, "polio"))
    assert store.release().waiting["updates"] == 0
    assert store.safe() and ("HIV", "flu") in store.shown()


def test_what_would_be_learned_without_the_rule() -> None:
    """The intruder of these tests finds what the rule prevents: a visit shown at once, and one in a new company."""
    before = {0: (1, ("flu",)), 1: (1, ("cold",)), 2: (1, ("ulcer",))}
    at_once = {0: (1, ("HIV", "flu")), 1: (1, ("cold",)), 2: (1, ("ulcer",))}
    assert any(who == (0, 0) for who, *_ in exposed([before, at_once], 2, 2))
    # Leaving, and coming back among strangers with the old visit and a new one: what was had before is still there.
    elsewhere = {0: (2, ("HIV", "flu")), 3: (2, ("gout", "mumps")), 4: (2, ("polio", "rubella"))}
    assert any(who == (0, 0) for who, *_ in exposed([before, elsewhere], 2, 2))


def test_further_visits_are_shown_with_so_many_others_that_both_parts_are_good(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST)
    store.release()
    store.insert((20, "a", 20, "HIV"), (21, "b", 21, "mumps"))
    assert store.release().waiting["updates"] == 0
    assert store.safe()
    # The same of two who have flu both would say that they had: they wait, together with whatever they bring.
    other = Register(_folder(tmp_path, "other"), *FIRST, **FOUR)
    other.release()
    other.insert((20, "a", 20, "HIV"), (22, "c", 22, "mumps"))
    assert other.release().waiting["updates"] == 2
    assert other.safe()


def test_one_of_two_visits_is_deleted(tmp_path: Path) -> None:
    """What is published of a person is not taken back by halves: the half that is missing would be known."""
    store = Register(tmp_path, *FIRST, (8, "a", 20, "HIV"))
    store.release()
    store.delete([8])
    assert store.release().waiting["updates"] == 1
    assert store.safe() and ("HIV", "flu") in store.shown()
    store.delete([0])  # now she has none left, and is gone
    assert store.release().waiting == {"insertions": 0, "deletions": 1, "updates": 0}
    store.delete([1, 2, 3])
    assert store.release().masked.height == 4
    assert store.safe()


def test_who_is_back_is_who_they_were(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST, **FOUR)
    store.release()
    store.delete([0, 1, 2, 3])
    assert store.release().masked.height == 4
    strangers = ((30, "x", 21, "polio"), (31, "y", 22, "rubella"), (32, "z", 23, "mumps"), (33, "w", 24, "polio"))
    store.insert((20, "a", 20, "flu"), *strangers)  # another visit, the same person, the same illness
    made = store.release()
    assert made.waiting["insertions"] == 1 and store.safe()
    store.insert((21, "b", 21, "cold"), (22, "c", 22, "flu"), (23, "d", 23, "cold"))
    assert store.release().waiting["insertions"] == 0
    assert store.safe()


def test_who_is_back_with_something_else_beside_what_they_had_waits(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST, **FOUR)
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    back = (
        (20, "a", 20, "flu"),
        (24, "a", 20, "HIV"),
        (21, "b", 21, "cold"),
        (22, "c", 22, "flu"),
        (23, "d", 23, "cold"),
    )
    store.insert(*back)
    store.release()
    assert store.safe() and not any("HIV" in line for line in store.shown())


def test_a_new_stay_with_nothing_of_the_old_one_is_shown_among_strangers(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST, **FOUR)
    store.release()
    store.delete([0, 1, 2, 3])
    store.release()
    store.insert((20, "a", 20, "polio"), (30, "x", 21, "mumps"), (31, "y", 22, "polio"), (32, "z", 23, "mumps"))
    assert store.release().waiting["insertions"] == 0
    assert store.safe()


def test_who_left_and_is_still_shown_is_not_shown_twice(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST, **FOUR)
    store.release()
    store.delete([0])
    assert store.release().waiting["deletions"] == 1
    store.insert(
        (20, "a", 20, "polio"),
        (30, "x", 21, "mumps"),
        (31, "y", 22, "polio"),
        (32, "z", 23, "mumps"),
        (33, "v", 24, "gout"),
    )
    made = store.release()
    assert made.masked.height == 12 and store.safe()
    assert all(len({c for i, (c, _) in release.items() if i == 0}) == 1 for release in store.releases)


def test_visits_move_between_persons_and_come_in_every_way(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST)
    store.release()
    assert store.update((1, "b", 21, "mumps")).updated == 1
    assert store.store.update(pl.DataFrame({"visit": [2], "pid": ["a"]})).deleted == 1  # it was the only one of c
    assert store.store.upsert(table((3, "d", 23, "gout"), (9, "i", 24, "flu"))).records == 8
    assert len(store.keys()) == 9 and store.records().filter(pid="a").height == 2
    store.release()
    assert store.safe()
    assert store.undo().records == 7 and len(store.keys()) == 8
    store.release()
    assert store.safe()
    store.renew()
    store.release()
    store.withdraw()
    store.insert((50, "k", 24, "flu"), (51, "l", 25, "cold"))
    store.release()
    assert store.safe()


def test_names_of_batches_and_dry_runs(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST)
    more = table((20, "a", 20, "HIV"), (21, "x", 40, "flu"))
    assert store.store.insert(more, batch="monday").inserted == 1
    assert not store.store.insert(more, batch="monday").applied
    with pytest.raises(InputError, match="something else"):
        store.store.insert(table((22, "a", 20, "HIV")), batch="monday")
    tried = store.store.apply(insert=table((23, "y", 41, "gout")), dry_run=True)
    assert tried.prospect is not None and tried.prospect.shown == 11 and len(store.keys()) == 10
    assert not store.store.upsert(more).applied


def test_a_feed_of_visits(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST)
    store.release()
    source = f"sqlite:///{tmp_path}/clinic.db"
    feed = pl.concat([table(*FIRST[1:]), table((20, "a", 20, "flu"), (21, "x", 24, "HIV"), (22, "y", 25, "flu"))])
    write_sql(feed.with_columns(version=pl.int_range(pl.len())), source, "visits")
    found = sync(store.store, source, "visits", since="all")
    assert found.applied is not None and len(store.keys()) == 10
    store.release()
    assert store.safe()
    again = sync(store.store, source, "visits").applied
    assert again is not None and not again.applied


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"insert": table((0, "q", 20, "flu"))}, "key '0' is in the store already"),
    ({"update": table((90, "q", 20, "flu"))}, "key '90' is not in the store"),
    ({"delete": [90]}, "key '90' is not in the store"),
    ({"insert": table((30, "q", 20, "flu")), "delete": [30]}, "key '30' is named twice|not in the store"),
    ({"insert": table((30, None, 20, "flu"))}, "record 1 of the batch is nobody's"),  # type: ignore[arg-type]
    ({"insert": table((30, "q", 200, "flu"))}, "outside the declared domain"),
    ({"insert": table((30, "q", 20, "flu")).with_columns(age=pl.lit(20.5))}, "not a whole number"),
)


@pytest.mark.parametrize(("batch", "says"), BAD)
def test_bad_batches_change_nothing(tmp_path: Path, batch: dict[str, Any], says: str) -> None:
    store = Register(tmp_path, *FIRST)
    with pytest.raises(InputError, match=says):
        store.apply(**batch)
    assert store.status()["version"] == 1 and store.check().passed


def test_rows_of_a_person_that_differ_are_refused_unless_it_is_said_which_counts(tmp_path: Path) -> None:
    strict = {**SCHEMA, "age": {"role": "quasi", "domain": [0, 100]}}
    store = Register(tmp_path, *FIRST, schema=strict)
    with pytest.raises(InputError, match="'age' differs between the rows of 1 of 1 persons"):
        store.insert((20, "a", 50, "HIV"))
    last = Register(_folder(tmp_path, "last"), *FIRST, schema={**SCHEMA, "age": {**SCHEMA["age"], "within": "last"}})
    last.release()
    last.insert((20, "a", 24, "flu"), (21, "b", 25, "cold"))
    made = last.release()
    assert "[24, 25]" in made.masked["age"].to_list() and last.safe()


REFUSED: tuple[tuple[dict[str, Any], type[ShoalError], str], ...] = (
    ({"guard": "none"}, UnsupportedError, 'guard = "none" is not proved safe for people with several rows'),
    ({"guard": "m-invariance"}, UnsupportedError, 'guard = "m-invariance" is not proved safe'),
    ({"policy": POLICY & shoal.AlphaK(0.5, "ill")}, UnsupportedError, "not proved safe across releases"),
    (
        {"policy": POLICY & shoal.LDiversity(2, "ill", variant="entropy")},
        UnsupportedError,
        "not proved safe across releases",
    ),
    (
        {"schema": {**SCHEMA, "visit": {"role": "person"}, "pid": {"role": "other"}}},
        ConfigError,
        "cannot be the key as well",
    ),
)


@pytest.mark.parametrize(("more", "kind", "says"), REFUSED)
def test_what_is_not_proved_is_refused(tmp_path: Path, more: dict[str, Any], kind: type[ShoalError], says: str) -> None:
    with pytest.raises(kind, match=says):
        Register(tmp_path, *FIRST, **more)
    assert not (tmp_path / "registry.db").exists()


def test_no_single_release_is_made_without_the_guard(tmp_path: Path) -> None:
    store = Register(tmp_path, *FIRST)
    with pytest.raises(UnsupportedError, match="not proved safe for people"):
        store.store.release(guard="none")


def test_tokens_tell_which_rows_belong_together_and_the_file_is_verified_by_them(tmp_path: Path) -> None:
    schema = {**SCHEMA, "pid": {"role": "person", "publish": "token"}}
    store = Register(tmp_path, *FIRST, (8, "a", 20, "HIV"), schema=schema)
    made = store.release(tmp_path / "one.csv")
    assert made.masked["pid"].n_unique() == 8 and made.release.evidence.persons == 8
    assert shoal.verify(pl.read_csv(tmp_path / "one.csv"), POLICY, schema).require().persons == 8
    store.insert((20, "x", 40, "flu"), (21, "y", 41, "gout"))
    store.release(tmp_path / "two.csv")
    store.export(1, tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
    assert store.safe()


CANARIES = ("PID-canary-77", "VISIT-canary-1", "VISIT-canary-2", "987654", "WARD-canary-5")


def test_a_person_is_forgotten_with_all_rows(tmp_path: Path) -> None:
    """Nothing of any row is left, but what their class published."""
    schema = {**SCHEMA, "age": {**SCHEMA["age"], "domain": [0, 1_000_000]}, "ward": {"role": "quasi", "within": "last"}}
    rows = table(*FIRST).with_columns(visit=pl.col("visit").cast(pl.String), ward=pl.lit("north"))
    own = pl.DataFrame(
        {
            "visit": CANARIES[1:3],
            "pid": [CANARIES[0]] * 2,
            "age": [987_654] * 2,
            "ill": ["flu", "cold"],
            "ward": [CANARIES[4]] * 2,
        }
    )
    store = shoal.Store.create(
        f"sqlite:///{tmp_path}/registry.db", pl.concat([rows, own.select(rows.columns)]), POLICY, key="visit",
        schema=schema, algorithm="mondrian", refine=False,
    )  # fmt: skip
    store.release()
    assert traces(tmp_path)
    with pytest.raises(InputError, match="Column 'pid', key 1: nobody with the key 'VISIT-canary-1'"):
        store.forget(["VISIT-canary-1"])
    done = store.forget([CANARIES[0]])
    assert (done.forgotten, done.deleted, done.still_shown) == (1, 1, 1)
    assert traces(tmp_path) == []
    assert store.check().passed and len(store.keys()) == 8
    made = store.release()
    assert made.waiting["deletions"] == 1 and made.masked.height == 10 and store.audit().safe
    # Back under the same key: nothing is known of what they had, so that they wait.
    store.insert(own.select(rows.columns).with_columns(ward=pl.lit("south"), age=pl.lit(30)))
    store.release()
    assert store.audit().safe


def traces(folder: Path) -> list[str]:
    """Canaries in any byte of the folder, and in any cell that is a table in itself, but for what was published."""
    content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file())
    found = [name for name in CANARIES[:3] if name.encode() in content]
    with sqlite3.connect(folder / "registry.db") as connection:
        connection.row_factory = sqlite3.Row
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {name}"):
                for column, cell in zip(row.keys(), row, strict=True):
                    if column not in ("masked", "manifest"):
                        found += [canary for canary in CANARIES if canary in opened(cell)]
    connection.close()
    return found


def opened(cell: Any) -> str:
    if not isinstance(cell, bytes):
        return str(cell)
    frame = pl.read_parquet(io.BytesIO(cell)) if cell[:4] == b"PAR1" else pl.read_ipc(io.BytesIO(cell))
    return str(frame.drop("__region", strict=False).rows())


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name
