"""Release: the published table, its order, the files that are written, and what commits them to the original."""

from __future__ import annotations

import hashlib
import json
import pickle
import stat
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.errors import InputError, VerificationError
from shoal.io.files import read_table
from shoal.io.fingerprint import fingerprint
from shoal.manifest import commitment, manifest_path, published_measures, secret_path
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.order import class_ranks, content_key, ranks, shuffled
from shoal.partition import Partition
from shoal.recode import generalize, microaggregate
from shoal.release import file_digest, mask
from shoal.states import class_states

FRAME = pl.DataFrame(
    {
        "name": ["Ann", "Ben", "Cem", "Dee", "Eve", "Flo"],
        "ill": ["flu", "flu", "cold", "cold", "flu", None],
        "age": [30, 32, 40, 44, 60, 66],
        "ward": ["n", "s", "s", "n", "n", "s"],
        "seen": [date(2024, 1, day) for day in (1, 2, 3, 4, 5, 6)],
    }
)
SCHEMA: dict[str, Any] = {
    "name": {"role": "identifier"},
    "ill": {"role": "sensitive"},
    "age": {"role": "quasi"},
    "ward": {"role": "other"},
    "seen": {"role": "quasi"},
}


def masked(
    labels: list[int], schema: dict[str, Any] | None = None, frame: pl.DataFrame = FRAME, **more: Any
) -> pl.DataFrame:
    data = Microdata.from_frame(frame, schema or SCHEMA)
    partition = Partition(np.array(labels))
    how = {"recode": "generalize", "intervals": "text", "drop_suppressed": False, "shuffle_seed": None, **more}
    return mask(data, partition, class_states(data, partition, data.space("ncp")), **how)[0]


# -- the table


def test_identifiers_go_and_everything_else_stays_in_its_place() -> None:
    found = masked([0, 0, 1, 1, 2, 2])
    assert found.columns == ["ill", "age", "ward", "seen"]
    assert found["ill"].to_list() == FRAME["ill"].to_list() and found["ward"].to_list() == FRAME["ward"].to_list()
    assert found["age"].to_list() == ["[30, 32]"] * 2 + ["[40, 44]"] * 2 + ["[60, 66]"] * 2
    ends = masked([0, 0, 1, 1, 2, 2], intervals="columns")
    assert ends.columns == ["ill", "age_min", "age_max", "ward", "seen_min", "seen_max"]
    assert masked([0, 0, 1, 1, 2, 2], recode="microaggregate")["age"].to_list() == [31, 31, 42, 42, 63, 63]


def test_suppressed_records_are_starred_or_left_out() -> None:
    labels = [-1, 0, 0, -1, 1, 1]
    found = masked(labels)
    assert found["age"].to_list() == ["*", "[32, 40]", "[32, 40]", "*", "[60, 66]", "[60, 66]"]
    assert found["ill"].to_list() == FRAME["ill"].to_list()
    kept = masked(labels, drop_suppressed=True)
    assert kept.equals(found.filter(pl.Series([False, True, True, False, True, True])))
    assert masked([0] * 6, drop_suppressed=True).height == 6
    averages = masked(labels, recode="microaggregate")
    assert averages["age"].to_list() == [None, 36, 36, None, 63, 63]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("recode", ["generalize", "microaggregate"])
@pytest.mark.parametrize("drop", [False, True])
def test_every_record_shows_what_its_class_publishes(seed: int, recode: str, drop: bool) -> None:
    """Class by class is only the quick way: record by record it is the same, in any order of the classes."""
    data = random_table(seed, 40)
    labels = np.random.default_rng(seed).integers(-1, 9, 40)
    partition = Partition.compact(labels)
    states = class_states(data, partition, data.space("ncp"))
    found, _ = mask(data, partition, states, recode=recode, intervals="text", drop_suppressed=drop, shuffle_seed=None)
    rows = np.flatnonzero(labels >= 0) if drop else np.arange(40)
    wanted = generalize(data, partition, states) if recode == "generalize" else microaggregate(data, partition)
    for column in wanted:
        assert found[column.name].to_list() == column.gather(rows).to_list()
    assert found["illness"].to_list() == data.frame["illness"].gather(rows).to_list()


def test_a_column_that_would_be_published_twice_is_named() -> None:
    frame = FRAME.rename({"ward": "age_max"})
    schema = {("age_max" if name == "ward" else name): value for name, value in SCHEMA.items()}
    assert masked([0] * 6, schema, frame).columns == ["ill", "age", "age_max", "seen"]
    with pytest.raises(InputError, match="Column 'age_max' would be published twice; rename it, or use intervals"):
        masked([0] * 6, schema, frame, intervals="columns")


def test_a_column_whose_own_name_ends_like_an_interval() -> None:
    frame = pl.DataFrame({"age_min": [1, 2, 3], "x": [1, 2, 3]})
    schema = {"age_min": {"role": "quasi"}, "x": {"role": "quasi"}}
    assert masked([0, 0, 0], schema, frame)["age_min"].to_list() == ["[1, 3]"] * 3
    assert masked([0, 0, 0], schema, frame, intervals="columns").columns == [
        "age_min_min",
        "age_min_max",
        "x_min",
        "x_max",
    ]


# -- its order


def test_the_order_is_drawn_from_what_is_published_and_the_seed() -> None:
    """Two originals that publish the same rows publish them in the same order, whoever's record came first."""
    labels = [0, 0, 1, 1, 2, 2]
    other = [1, 0, 3, 2, 5, 4]  # inside each class the two records change places, and with them what stays hidden
    frame = FRAME.with_columns(ill=pl.lit("flu"), ward=pl.lit("n"))
    for seed in range(4):
        one = masked(labels, frame=frame, shuffle_seed=seed)
        assert one.equals(masked(labels, frame=frame[other], shuffle_seed=seed))
    rows = {tuple(masked(labels, shuffle_seed=seed).rows()) for seed in range(8)}
    assert len(rows) > 4
    assert all(sorted(found, key=repr) == sorted(masked(labels).rows(), key=repr) for found in rows)


def test_every_published_column_decides_the_order() -> None:
    """Rows that differ in any column are told apart before they are shuffled, not by where they stood in the original."""
    reversed_frame, labels = FRAME[::-1], [0] * 6
    for seed in range(4):
        found = masked(labels, shuffle_seed=seed)
        assert found.equals(masked(labels, frame=reversed_frame, shuffle_seed=seed))
        assert masked([0, 0, 0, 1, 1, 1], shuffle_seed=seed).equals(
            masked([1, 1, 1, 0, 0, 0], frame=reversed_frame, shuffle_seed=seed)
        )
    kept = masked([0, -1, 0, -1, 0, 0], drop_suppressed=True, shuffle_seed=1)
    turned = masked([0, 0, -1, 0, -1, 0], frame=reversed_frame, drop_suppressed=True, shuffle_seed=1)
    assert kept.height == 4 and kept.equals(turned)


def test_identifiers_have_no_say_in_the_order() -> None:
    renamed = FRAME.with_columns(name=pl.Series(["Z", "Y", "X", "W", "V", "U"]))
    assert masked([0] * 6, shuffle_seed=2).equals(masked([0] * 6, frame=renamed, shuffle_seed=2))


def test_rank_of_values_missing_first() -> None:
    def found(values: list[Any], dtype: Any = None) -> tuple[list[int], int]:
        series = pl.Series(values, dtype=dtype)
        places, count = ranks(series)
        return places.tolist(), count

    assert found(["b", None, "a", "b"]) == ([2, 0, 1, 2], 3)
    assert found([None, None], pl.String) == ([0, 0], 1)
    assert found([2.5, -1.0, None, 2.5]) == ([2, 1, 0, 2], 3)
    assert found([True, None, False]) == ([2, 0, 1], 3)
    assert found([date(2024, 1, 2), date(2024, 1, 1)]) == ([2, 1], 3)


def test_contents_are_ranked_as_whole_rows() -> None:
    random = np.random.default_rng(0)
    columns = [(random.integers(0, size, 200), size) for size in (3, 1, 7, 2)]
    rows = list(zip(*(places.tolist() for places, _ in columns), strict=True))
    for wide in (1, 2**40):
        # Wide columns no longer fit one number together; the ranks are the same all the same.
        key = content_key([(places * wide, size * wide) for places, size in columns])
        assert np.argsort(key, kind="stable").tolist() == sorted(range(200), key=lambda i: (rows[i], i))
        assert all((key[i] == key[j]) == (rows[i] == rows[j]) for i in range(0, 200, 7) for j in range(200))
    assert columns[0][0].max() == 2  # what went in is left alone
    table = pl.DataFrame({"a": ["y", "x", "y"], "b": [1, None, 1]})
    assert class_ranks(table)[0] == class_ranks(table)[2] > class_ranks(table)[1]


def test_equal_contents_keep_their_order_before_the_shuffle() -> None:
    order = shuffled(np.zeros(50, dtype=np.int64), 7)
    assert order.tolist() == np.random.default_rng(7).permutation(50).tolist()
    key = np.arange(50)[::-1].copy()
    assert shuffled(key, 7).tolist() == (49 - order).tolist()


# -- the files


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    frame = pl.DataFrame({"age": [20, 21, 22, 40, 41, 42], "ill": ["flu", "cold", "flu", "cold", "flu", None]})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    return shoal.anonymize(data, shoal.KAnonymity(3), algorithm="mondrian", refine=False, seed=4)


def test_written_whole_with_both_halves(release: shoal.Release, tmp_path: Path) -> None:
    target = release.write(str(tmp_path / "masked.csv"))
    assert target == tmp_path / "masked.csv" and read_table(target).height == 6
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "masked.csv",
        "masked.csv.manifest.json",
        "masked.csv.secret.json",
    ]
    told, kept = (json.loads(path(target).read_text(encoding="utf-8")) for path in (manifest_path, secret_path))
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    assert told["output_sha256"] == kept["output_sha256"] == digest == file_digest(target)
    assert told["input_commitment"] == kept["input_commitment"]
    assert kept["input_commitment"] == commitment(release.data.frame, bytes.fromhex(kept["key"]))
    assert "key" not in told and "seed" not in told["settings"] and kept["settings"]["seed"] == 4
    assert told["policy"] == {"k": 3} and told["evidence"]["passed"] is True and told["evidence"]["violations"] == []
    assert stat.S_IMODE(secret_path(target).stat().st_mode) == 0o600
    text = manifest_path(target).read_text(encoding="utf-8")
    assert text == json.dumps(told, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def test_the_key_is_random_or_the_owners(release: shoal.Release, tmp_path: Path) -> None:
    keys = []
    for name in ("a.csv", "b.csv"):
        release.write(tmp_path / name)
        keys.append(json.loads(secret_path(tmp_path / name).read_text())["key"])
    assert keys[0] != keys[1] and len(bytes.fromhex(keys[0])) == 32
    release.write(tmp_path / "c.csv", key=b"k" * 32)
    assert json.loads(secret_path(tmp_path / "c.csv").read_text())["key"] == (b"k" * 32).hex()


@pytest.mark.parametrize("name", ["masked.arrow", "masked.parquet", "masked.csv", "memory"])
def test_nothing_of_records_that_are_left_out_lies_in_the_bytes(name: str, tmp_path: Path) -> None:
    """A frame that was filtered keeps the texts of all its rows in memory, and an Arrow file or a pickle takes them along."""
    n = 400
    rest = {
        "illness": [f"a rather long illness {i % 7}" for i in range(n)],
        "note": [f"a note that is long enough {i % 5}" for i in range(n)],
    }
    given = pl.DataFrame(
        {
            "age": [*(20 + i // 40 for i in range(n)), 95, 40],
            "illness": [
                *rest["illness"],
                "CANARY of a record that is left out",
                "CANARY of a row that is not in the table",
            ],
            "note": [*rest["note"], "CANARY that is beside it", "CANARY that is beside that one"],
        }
    )
    roles = {"age": "quasi", "illness": "sensitive", "note": "other"}
    release = shoal.anonymize(
        given.head(n + 1), {"k": 3}, schema=roles, algorithm="mondrian", suppress=0.1, suppressed="drop"
    )
    assert release.masked.height == n
    content = pickle.dumps(release.frame) if name == "memory" else release.write(tmp_path / name).read_bytes()
    assert b"a note that is long enough" in content or name == "masked.parquet"
    assert b"CANARY" not in content


def test_nothing_is_overwritten_unless_forced(release: shoal.Release, tmp_path: Path) -> None:
    release.write(tmp_path / "masked.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="exists"):
        release.write(tmp_path / "masked.csv")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    release.write(tmp_path / "masked.csv", force=True)
    with pytest.raises(InputError, match=r"masked\.docx"):
        release.write(tmp_path / "masked.docx")
    assert not (tmp_path / "masked.docx").exists()


@pytest.mark.parametrize("name", ["people.csv", "people.csv.manifest.json", "people.csv.secret.json"])
def test_a_release_never_overwrites_what_it_was_made_from(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text("age,ill\n20,flu\n21,flu\n40,cold\n41,cold\n", encoding="utf-8")
    frame = pl.DataFrame({"age": [20, 21, 40, 41], "ill": ["flu", "flu", "cold", "cold"]})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    made = shoal.anonymize(replace(data, source=source), shoal.KAnonymity(2), algorithm="mondrian", refine=False)
    before = source.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    for folder in (tmp_path, link):
        with pytest.raises(InputError, match="is the table itself; a release never overwrites"):
            made.write(folder / "people.csv", force=True)
    assert source.read_bytes() == before
    made.write(tmp_path / "other.csv")


def test_a_release_that_was_tampered_with_does_not_verify(release: shoal.Release) -> None:
    ages = release.masked["age"].to_list()
    ages[0] = "[1, 99]"
    forged = replace(release, masked=release.masked.with_columns(age=pl.Series(ages)))
    with pytest.raises(VerificationError, match="does not satisfy its policy"):
        forged.verify()
    assert release.verify().passed
    assert isinstance(release.frame, pl.DataFrame)


# -- what commits it to the original


def test_the_fingerprint_is_of_the_content() -> None:
    frame = pl.DataFrame({"a": ["x", None, "yz"], "b": [1, None, 3], "c": [date(2024, 1, 1), None, None]})
    same = fingerprint(frame)
    assert same == fingerprint(frame.clone()) == fingerprint(pl.concat([frame[:1], frame[1:]], rechunk=False))
    changes = [
        frame.rename({"a": "aa"}),
        frame.with_columns(a=pl.Series(["xy", None, "z"])),  # the same letters, cut elsewhere
        frame.with_columns(a=pl.Series(["x", "", "yz"])),
        frame.with_columns(a=pl.Series(["x", None, "yZ"])),
        frame.with_columns(b=pl.Series([1, 0, 3])),
        frame.with_columns(b=pl.Series([1, None, 4])),
        frame.with_columns(b=pl.col("b").cast(pl.Float64)),
        frame.with_columns(c=pl.Series([date(2024, 1, 2), None, None])),
        frame[:2],
        frame[::-1],
    ]
    assert len({same, *map(fingerprint, changes)}) == len(changes) + 1
    assert fingerprint(pl.DataFrame({"a": pl.Series([None, None], dtype=pl.String)})) != fingerprint(
        pl.DataFrame({"a": ["", ""]})
    )
    assert commitment(frame, b"one") != commitment(frame, b"two") != commitment(changes[0], b"two")
    # A slice is its own content, not the text around it.
    assert fingerprint(frame[2:]) == fingerprint(
        pl.DataFrame({"a": ["yz"], "b": [3], "c": [None]}, schema=frame.schema)
    )


def test_losses_that_know_the_original_are_not_published() -> None:
    data = random_table(1, 40)
    partition = Partition.compact(np.random.default_rng(1).integers(-1, 6, 40))
    found = measure(data, partition, 2)
    told = published_measures(found)
    assert set(told) == {
        "classes", "smallest_class", "largest_class", "suppressed", "dm", "avg", "changed", "nil", "distortion", "precision",
    }  # fmt: skip
    assert all(told[name] == round(found.to_dict()[name], 2) for name in ("nil", "distortion", "precision"))
    assert found.suppressed > 0
    assert set(published_measures(found, left_out=True)) == {"classes", "smallest_class", "largest_class"}
    whole = measure(data, Partition(np.zeros(40)), 2)
    assert published_measures(whole, left_out=True) == published_measures(whole)
