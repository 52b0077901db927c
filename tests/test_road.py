"""From a table to a verified release, through the public interface."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.tables import random_table, rt7

import shoal
import shoal.io.frames
import shoal.policy
from shoal.algorithms import names
from shoal.datasets import hospital
from shoal.errors import InfeasibleError, InternalError
from shoal.io.files import read_table
from shoal.manifest import manifest_path
from shoal.recode import microaggregate

SCHEMA: dict[str, Any] = {
    "name": {"role": "identifier"},
    "record": {"role": "identifier"},
    "age": {"role": "quasi"},
    "sex": {"role": "quasi"},
    "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 2, 0]}},
    "admitted": {"role": "quasi", "taxonomy": {"dates": ["month", "year"]}},
    "diagnosis": {"role": "sensitive"},
    "*": {"role": "other", "accept": "made up"},
}
POLICY = shoal.KAnonymity(5) & shoal.PSensitive(2, "diagnosis")


def release(frame: Any, **more: Any) -> shoal.Release:
    data = shoal.Microdata.from_frame(frame, SCHEMA)
    return shoal.anonymize(data, POLICY, **{"algorithm": "mondrian", "seed": 3, **more})


def test_release_has_no_identifier_and_every_record() -> None:
    made = release(hospital(300, 1))
    assert made.masked.columns == ["age", "sex", "zip", "admitted", "occupation", "diagnosis", "stay", "cost"]
    assert made.masked.height == 300
    assert made.verify().smallest >= 5
    assert made.measures.classes == made.evidence.classes


def test_frames_come_back_in_the_library_they_came_in() -> None:
    frame = hospital(200, 2)
    for given, kind in [(frame.to_pandas(), pd.DataFrame), (frame, pl.DataFrame), (frame.to_arrow(), pa.Table)]:
        made = release(given)
        assert isinstance(made.frame, kind)


def test_the_same_bytes_from_every_library(tmp_path: Path) -> None:
    frame = hospital(200, 2)
    for index, given in enumerate([frame.to_pandas(), frame, frame.to_arrow()]):
        release(given).write(tmp_path / f"{index}.csv", key=b"the same")
    texts = {(tmp_path / f"{index}.csv").read_bytes() for index in range(3)}
    manifests = {manifest_path(tmp_path / f"{index}.csv").read_bytes() for index in range(3)}
    assert (len(texts), len(manifests)) == (1, 1)


def test_order_is_shuffled_unless_kept() -> None:
    frame = hospital(200, 4)
    kept = release(frame, order="keep").masked
    assert kept["cost"].equals(frame["cost"])
    shuffled = release(frame).masked
    assert not shuffled["cost"].equals(frame["cost"])
    assert shuffled["cost"].sort().equals(frame["cost"].sort())


@pytest.mark.filterwarnings("default")
def test_a_kept_order_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="keep their order"):
        release(hospital(200, 4), order="keep")


def test_what_is_written_reads_back_and_verifies(tmp_path: Path) -> None:
    made = release(hospital(300, 5))
    for suffix in ["csv", "parquet", "jsonl", "xlsx", "arrow"]:
        path = made.write(tmp_path / f"masked.{suffix}")
        table = read_table(path)
        assert shoal.verify(table, POLICY, made.data.schema).passed
        told = json.loads(manifest_path(path).read_text())
        assert told["evidence"]["passed"] is True
        assert told["policy"] == {"k": 5, "p_sensitive": {"p": 2, "attribute": "diagnosis"}}


def test_numbers_for_people_who_compute() -> None:
    columns = release(hospital(300, 6), intervals="columns").masked
    assert columns["age_min"].dtype == pl.Int64
    assert (columns["age_min"] <= columns["age_max"]).all()
    middle = release(hospital(300, 6), intervals="midpoint").masked
    assert middle["age"].dtype.is_numeric()


def test_microaggregation_publishes_means_and_modes() -> None:
    frame = pl.DataFrame({"x": [1, 2, 6, 20, 21, 25], "c": ["a", "a", "b", "b", "b", "a"]})
    data = shoal.Microdata.from_frame(frame, {"x": {"role": "quasi"}, "c": {"role": "quasi"}})
    x, c = microaggregate(data, shoal.Partition(np.array([0, 0, 0, 1, 1, 1])))
    assert x.to_list() == [3, 3, 3, 22, 22, 22]
    assert c.to_list() == ["a", "a", "a", "b", "b", "b"]
    made = shoal.anonymize(data, shoal.KAnonymity(3), algorithm="mondrian", recode="microaggregate", order="keep")
    assert made.masked["x"].dtype.is_numeric()


def test_published_values_cover_the_original() -> None:
    data = rt7()
    made = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="k_member", order="keep")
    for published, age in zip(made.masked["age"], data.frame["age"], strict=True):
        ends = [int(x) for x in str(published).strip("[]").split(",")]
        assert ends[0] <= age <= ends[-1]


def test_an_infeasible_policy_says_what_is_possible() -> None:
    with pytest.raises(InfeasibleError, match="the table has 7; ask for k ≤ 7"):
        shoal.anonymize(rt7(), shoal.KAnonymity(8), algorithm="k_member")


def test_nothing_unverified_leaves_the_house(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(*_: Any, **__: Any) -> shoal.Partition:
        return shoal.Partition(np.arange(7))

    monkeypatch.setattr("shoal.road.run", careless)
    with pytest.raises(InternalError, match="failed verification, nothing was released"):
        shoal.anonymize(rt7(), shoal.KAnonymity(2), algorithm="k_member", refine=False)


@pytest.mark.parametrize("algorithm", [name for name in names() if name != "auto"])
def test_the_input_is_left_alone(algorithm: str) -> None:
    data = random_table(3, n=40)
    frame, codes = data.frame.clone(), data.codes.copy()
    shoal.anonymize(data, shoal.KAnonymity(3), algorithm=algorithm)
    assert data.frame.equals(frame)
    assert np.array_equal(data.codes, codes)


def test_local_suppression_blanks_single_cells() -> None:
    frame = pl.DataFrame({"a": [1, 1, 2, 2, None, None], "b": ["x", "y", "z", "z", "x", "x"]})
    data = shoal.Microdata.from_frame(frame, {"a": {"role": "quasi"}, "b": {"role": "quasi"}})
    made = shoal.anonymize(
        data, shoal.KAnonymity(2), algorithm="mondrian", refine=False, recode="suppress", order="keep"
    )
    assert made.masked["a"].to_list() == ["1", "1", "2", "2", None, None]
    assert made.masked["b"].to_list() == ["*", "*", "z", "z", "x", "x"]
    assert made.measures.il == 2


def test_a_file_is_normalised_and_its_policy_tested_for_feasibility_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal, feasible = shoal.io.frames._normal_column, shoal.policy.Rules.require_feasible
    columns: list[str] = []
    asked: list[int] = []

    def count_column(column: pl.Series, label: str) -> pl.Series:
        columns.append(column.name)
        return normal(column, label)

    def count_rules(rules: shoal.policy.Rules) -> None:
        asked.append(rules.n)
        feasible(rules)

    monkeypatch.setattr("shoal.io.frames._normal_column", count_column)
    monkeypatch.setattr("shoal.policy.Rules.require_feasible", count_rules)
    path = tmp_path / "people.csv"
    path.write_text("age,illness\n" + "".join(f"{20 + i},{'flu' if i % 3 else 'cold'}\n" for i in range(12)))
    data = shoal.read(path, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}})
    shoal.anonymize(data, shoal.KAnonymity(3), algorithm="mondrian", refine=False)
    assert columns == ["age", "illness"]
    assert asked == [12]
