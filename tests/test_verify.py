"""The verifier: classes from published values alone, missing is a value, suppressed records are a class."""

from __future__ import annotations

import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.verifier import assumed_roles, derive_classes, verify

SCHEMA: Schema = read_schema(
    {"age": {"role": "quasi"}, "zip": {"role": "quasi"}, "ill": {"role": "sensitive"}, "name": {"role": "identifier"}}
)
GOOD = pl.DataFrame(
    {
        "age": ["[20, 29]", "[20, 29]", "[20, 29]", "40", "40"],
        "zip": ["41***", "41***", "41***", None, None],
        "ill": ["flu", "cold", "flu", "flu", "cold"],
    }
)


def two_and_two() -> Policy:
    return Policy((shoal.KAnonymity(2), shoal.PSensitive(2)))


def test_a_good_table_passes_with_its_strongest_parameters() -> None:
    found = verify(GOOD, two_and_two(), SCHEMA)
    assert found.passed and found.require() is found
    assert (found.records, found.classes, found.smallest, found.largest) == (5, 2, 2, 3)
    assert [check.strongest for check in found.checks] == [2.0, 2.0]


def test_one_changed_cell_is_found_and_its_class_named() -> None:
    changed = GOOD.with_columns(zip=pl.Series(["41***", "41***", "41***", None, "417**"]))
    found = verify(changed, two_and_two(), SCHEMA)
    assert not found.passed
    with pytest.raises(VerificationError, match=r"class \(age = 40, zip = 417\*\*\) with 1 record fails k_anonymity"):
        found.require()


def test_missing_is_a_value_that_tells_records_apart() -> None:
    labels, groups = derive_classes(
        GOOD.with_columns(zip=pl.Series(["41***", "41***", None, None, None])), ["age", "zip"]
    )
    assert labels.tolist() == [0, 0, 1, 2, 2]
    assert groups.height == 3


def test_suppressed_records_are_a_class_like_any_other() -> None:
    masked = GOOD.with_columns(age=pl.Series(["a", "a", "b", "b", "*"]), zip=pl.Series(["x", "x", "y", "y", "*"]))
    found = verify(masked, Policy((shoal.KAnonymity(2),)), SCHEMA)
    assert not found.passed
    assert found.violations[0].published == {"age": "*", "zip": "*"}


def test_missing_sensitive_values_are_no_value() -> None:
    masked = GOOD.with_columns(ill=pl.Series(["flu", "cold", "flu", "flu", None]))
    found = verify(masked, two_and_two(), SCHEMA)
    assert [check.holds for check in found.checks] == [True, False]


def test_an_identifier_in_the_table_is_refused() -> None:
    with pytest.raises(VerificationError, match="identifier 'name'"):
        verify(GOOD.with_columns(name=pl.lit("x")), two_and_two(), SCHEMA)


def test_a_quasi_identifier_that_is_gone_is_named() -> None:
    with pytest.raises(InputError, match="no column 'zip', which is a quasi-identifier"):
        verify(GOOD.drop("zip"), two_and_two(), SCHEMA)


def test_interval_columns_are_read_as_one_quasi_identifier() -> None:
    masked = GOOD.drop("age").with_columns(
        age_min=pl.Series([20, 20, 20, 40, 40]), age_max=pl.Series([29, 29, 29, 40, 40])
    )
    assert verify(masked, two_and_two(), SCHEMA).classes == 2


def test_a_policy_holds_as_written_and_as_read() -> None:
    ill = ["flu"] * 5 + ["HIV"] + ["flu", "HIV"] * 3
    ages = ["34"] * 5 + ["34.0"] + ["[30, 39]"] * 6
    masked = pl.DataFrame({"age": ages, "zip": ["41***"] * 12, "ill": ill})
    schema = read_schema({**{name: {"role": "quasi"} for name in ("age", "zip")}, "ill": {"role": "sensitive"}})
    policy = Policy((shoal.AlphaK(0.5),))
    found = verify(masked, policy, schema)
    assert [violation.way for violation in found.violations] == ["as written", "as written", "as read"]
    assert "several ways ('34' and '34.0')" in found.notes[0]


def test_cells_of_a_file_are_what_a_reader_sees() -> None:
    masked = pl.DataFrame({"age": [34] * 4, "zip": ["41***"] * 4, "ill": ["flu", "cold"] * 2})
    cells = masked.with_columns(age=pl.Series(["34", "34", "34", "34.0"]))
    assert verify(masked, two_and_two(), SCHEMA).passed
    found = verify(masked, two_and_two(), SCHEMA, cells=cells)
    assert (found.smallest, found.passed) == (1, False)


def test_undeclared_columns_are_refused() -> None:
    for name in ("Name", "age_min", "name_min", "ssn", "\ufeffage"):
        with pytest.raises(ConfigError, match="has no role"):
            verify(GOOD.with_columns(pl.lit("x").alias(name)), two_and_two(), SCHEMA)


def test_without_a_configuration_every_column_has_a_role_and_a_reason() -> None:
    masked = GOOD.with_columns(patient_id=pl.Series(range(5)), height_min=pl.lit(1), height_max=pl.lit(2))
    roles = {column.name: (column.role, column.why) for column in assumed_roles(masked)}
    assert roles["age"][0] == roles["zip"][0] == "quasi"
    assert "generalized" in roles["age"][1]
    assert "intervals of height" in roles["height_min"][1]
    assert list(roles) == masked.columns and all(why for _, why in roles.values())
