"""People with several rows: declared, settled, released and verified; the naive twin judges every release."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.visits import SCHEMA, accepted, policies, visits

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.persons import number_persons, persons_of, settled
from shoal.policy import Policy


@pytest.mark.parametrize("policy", policies()[:2], ids=lambda policy: policy.models[-1].name)
def test_refinement_keeps_persons_together(policy):
    frame = visits(150, 500, seed=5)
    data = shoal.Microdata.from_frame(frame, SCHEMA)
    plain = shoal.anonymize(data, policy, algorithm="mondrian", refine=False, order="keep")
    refined = shoal.anonymize(data, policy, algorithm="mondrian", refine=0.3, order="keep")
    accepted(frame, refined.masked, policy)
    assert refined.measures.ncp <= plain.measures.ncp


def test_a_table_of_visits_is_not_released_by_rows():
    frame = visits(200, 805, seed=1)
    schema = {**SCHEMA, "pid": {"role": "identifier"}, "age": {"role": "quasi"}, "zip": {"role": "quasi"}}
    with pytest.raises(InputError, match=r"'pid' repeats: 805 rows have 200 values.*role = \"person\".*repeats"):
        shoal.Microdata.from_frame(frame, schema)
    allowed = {**schema, "pid": {"role": "identifier", "repeats": "allowed"}}
    assert shoal.Microdata.from_frame(frame, allowed).n == 805
    other = shoal.Microdata.from_frame(frame, {**allowed, "pid": {"role": "other"}})
    with pytest.raises(InputError, match="looks like the key of a person"):
        shoal.anonymize(other, shoal.KAnonymity(5), refine=False)


def test_quasi_identifiers_that_differ_are_refused_with_count_and_place():
    frame = pl.DataFrame({"pid": [1, 2, 1, 2], "age": [30, 40, 31, 40], "ill": list("abab")})
    schema = {"pid": {"role": "person"}, "age": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    with pytest.raises(InputError, match=r"'age' differs.* 1 of 2 persons.*records 1 and 3") as caught:
        shoal.Microdata.from_frame(frame, schema)
    assert "30" not in str(caught.value) and "31" not in str(caught.value)


@pytest.mark.parametrize(
    ("within", "wanted"),
    [
        ("first", [3, 5, None]),
        ("last", [3, 2, None]),
        ("min", [1, 2, None]),
        ("max", [3, 5, None]),
        ("most", [3, 5, None]),
    ],
)
def test_one_value_a_person(within, wanted):
    frame = pl.DataFrame({"pid": ["a", "b", "a", "b", "a", "b", "c"], "x": [3, 5, 1, 5, 3, 2, None]})
    schema = read_schema({"pid": {"role": "person"}, "x": {"role": "quasi", "within": within}})
    assert settled(frame, schema, persons_of(frame, schema))["x"].to_list() == wanted


def test_min_of_a_category_needs_an_order():
    frame = pl.DataFrame({"pid": [1, 1], "x": ["low", "high"]})
    schema = {"pid": {"role": "person"}, "x": {"role": "quasi", "within": "min"}}
    with pytest.raises(shoal.ConfigError, match="has no order"):
        shoal.Microdata.from_frame(frame, schema)
    ordered = read_schema({**schema, "x": {"role": "quasi", "within": "max", "order": ["low", "high"]}})
    assert settled(frame, ordered, persons_of(frame, ordered))["x"].to_list() == ["high"]


def test_rows_that_are_nobodys_are_refused():
    with pytest.raises(InputError, match=r"'pid'.* 1 rows are nobody's, the first in record 2"):
        number_persons(pl.Series("pid", ["a", None]))


def test_a_token_tells_which_rows_belong_together_and_the_verifier_counts_by_it(tmp_path):
    frame = visits(60, 200, seed=2)
    schema = {**SCHEMA, "pid": {"role": "person", "publish": "token"}}
    data = shoal.Microdata.from_frame(frame, schema)
    policy = shoal.KAnonymity(4) & shoal.PSensitive(2, "illness") & shoal.TCloseness(0.5, "illness")
    release = shoal.anonymize(data, policy, algorithm="mondrian", refine=False, order="keep")
    token = release.masked["pid"]
    assert sorted(token.unique().to_list()) == list(range(1, 61))
    pairs = pl.DataFrame({"key": frame["pid"], "token": token}).unique()
    assert pairs.height == 60 and not set(map(str, token)) & set(frame["pid"])
    path = release.write(tmp_path / "masked.csv")
    found = shoal.verifier.verify_file(path, policy, read_schema(schema))
    assert found.passed and found.persons == 60 and found.smallest >= 4
    # One row of a person moved to another class is noticed.
    moved = (
        release.masked.with_row_index("i")
        .with_columns(
            pl.when(pl.col("i") == 0)
            .then(pl.lit(release.masked["zip"].unique().sort()[-1]))
            .otherwise("zip")
            .alias("zip")
        )
        .drop("i")
    )
    if not moved.equals(release.masked):
        assert (
            any("different classes" in problem for problem in shoal.verify(moved, policy, read_schema(schema)).problems)
            or not shoal.verify(moved, policy, read_schema(schema)).passed
        )


def test_without_a_token_the_verifier_says_that_it_counted_rows():
    frame = visits(60, 200, seed=2)
    data = shoal.Microdata.from_frame(frame, SCHEMA)
    policy = shoal.KAnonymity(4) & shoal.PSensitive(2, "illness") & shoal.TCloseness(0.5, "illness")
    release = shoal.anonymize(data, policy, algorithm="mondrian", refine=False)
    told = shoal.verify(release.masked, policy, data.schema)
    assert told.persons is None and len(told.checks) == 2
    assert any("rows were counted, not persons" in note and "t_closeness" in note for note in told.notes)


def test_the_key_itself_never_passes_for_a_token():
    frame = visits(60, 200, seed=2)
    data = shoal.Microdata.from_frame(frame, SCHEMA)
    release = shoal.anonymize(data, shoal.KAnonymity(4), algorithm="mondrian", refine=False, order="keep")
    with pytest.raises(VerificationError, match="person column 'pid'"):
        shoal.verify(release.masked.with_columns(pid=frame["pid"]), Policy((shoal.KAnonymity(4),)), data.schema)


def test_the_key_of_a_store_names_rows_and_not_persons(tmp_path):
    with pytest.raises(ConfigError, match="cannot be the key as well"):
        shoal.Store.create(f"sqlite:///{tmp_path}/s.db", visits(40, 90), shoal.KAnonymity(3), key="pid", schema=SCHEMA)


def test_person_in_one_word():
    frame = visits(60, 200)
    schema = {name: rule for name, rule in SCHEMA.items() if name != "pid"}
    assert shoal.Microdata.from_frame(frame, schema, person="pid").n == 60


def test_the_order_of_rows_changes_nothing(tmp_path):
    frame = visits(60, 200, seed=2)
    schema = {**SCHEMA, "pid": {"role": "person", "publish": "token"}, "age": {**SCHEMA["age"], "within": "max"}}
    texts = set()
    for seed in (0, 1):
        shuffled = frame[np.random.default_rng(seed).permutation(frame.height)].with_columns(zip=pl.lit("41010"))
        data = shoal.Microdata.from_frame(shuffled, schema)
        release = shoal.anonymize(data, shoal.KAnonymity(4), algorithm="mondrian", refine=False, seed=3)
        texts.add(release.masked.write_csv())
    assert len(texts) == 1
