"""What an analyst keeps: counting queries and a classifier, on masked against original data."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.measures.masking import masked_of, partition_of
from tests.tables import UNBALANCED, random_table

import shoal
from shoal.errors import ConfigError, InputError
from shoal.measures.masked import read_published
from shoal.measures.utility import Classification, _overlap, classification, query_error
from shoal.microdata import Microdata
from shoal.space import Interval


def test_an_unmasked_table_answers_exactly() -> None:
    data = random_table(1, 50)
    masked, _, _ = masked_of(data, shoal.Partition(np.arange(50, dtype=np.int32)))
    found = query_error(data, masked, queries=100)
    assert (found.median, found.mean, found.percentile_90) == (0, 0, 0)


def test_more_generalization_costs_more_answers() -> None:
    data = random_table(2, 200)
    order = np.lexsort(data.codes.T)
    errors = []
    for size in (2, 10, 50):
        labels = np.empty(200, dtype=np.int32)
        labels[order] = np.arange(200) // size
        masked, _, _ = masked_of(data, shoal.Partition(labels))
        errors.append(query_error(data, masked, queries=200).mean)
    assert errors == sorted(errors)
    assert errors[0] < errors[-1]


def test_the_same_seed_asks_the_same_queries() -> None:
    data = random_table(3, 60)
    masked, _, _ = masked_of(data, partition_of(3, 60, 12, suppressed=3))
    assert query_error(data, masked, queries=50, seed=5) == query_error(data, masked, queries=50, seed=5)
    assert query_error(data, masked, queries=50, seed=5) != query_error(data, masked, queries=50, seed=6)


def overlap(values: list[Any], published: list[Any], chosen: list[bool], **attribute: Any) -> list[float]:
    # The second column keeps a record with a star from being a suppressed one.
    frame = pl.DataFrame({"a": values, "b": ["x"] * len(values)})
    data = Microdata.from_frame(frame, {"a": {"role": "quasi", **attribute}, "b": {"role": "quasi"}})
    found = read_published(data, pl.DataFrame({"a": published, "b": ["x"] * len(published)}))
    return _overlap(data, found, 0, np.array(chosen)).tolist()


def test_spread_evenly_inside_boxes() -> None:
    # Whole numbers: 20 to 24 are five of the ten from 20 to 29; 30 is out, 22 is in.
    values = [20, 22, 24, 29, 30]
    asked = [True, True, True, False, False]
    assert overlap(values, ["[20, 29]", "30", "22"], asked) == pytest.approx([0.5, 0, 1])
    # Lengths: 0.5 to 1.0 is half of 0.5 to 1.5.
    assert overlap([0.5, 1.0, 1.5], ["[0.5, 1.5]"], [True, True, False]) == pytest.approx([0.5])
    # Two of the three leaves below the node, one of the two members of the set.
    rows = [["a", "x", "*"], ["b", "x", "*"], ["c", "x", "*"], ["d", "*"]]
    tree = {"taxonomy": {"rows": rows}}
    assert overlap(["a", "b", "c", "d"], ["x", "d"], [True, True, False, False], **tree) == pytest.approx([2 / 3, 0])
    assert overlap(["a", "b", "c"], ["{a, b}", "c"], [True, False, False]) == pytest.approx([0.5, 0])


def test_what_is_not_known_of_a_region() -> None:
    asked = [True, True, False, False]
    # Without a value nobody is counted; anything is spread over what the original has.
    assert overlap([10, 11, 18, 19, None], ["*", None, "[10, 19]"], asked) == pytest.approx([0.2, 0, 0.2])
    assert overlap([1.0, 2.5, 4.0, 5.0, None], ["*", "[2.5, 5.0]", "2.5", "5.0", "[4.0, 5.0]"], asked) == pytest.approx(
        [1.5 / 4, 0, 1, 0, 0]
    )
    # The ends of ranges that nobody has count as they are published.
    assert overlap([10, 20, 10, 20], ["[5, 14]", "[11, 30]", "[20, 20]", "[0, 9]"], [True, False]) == pytest.approx(
        [0.1, 0, 0, 0]
    )
    assert overlap(["a", "b", None, "a"], ["{a, ∅}", "*", None, "b"], [True, False, False]) == pytest.approx(
        [1 / 2, 1 / 3, 0, 0]
    )
    order = {"order": ["low", "middle", "high"]}
    found = overlap(["low", "middle", "high"], ["[low, middle]", "[low, high]", "high"], [False, True, True], **order)
    assert found == pytest.approx([1 / 2, 2 / 3, 1])


def naive_part(data: Microdata, name: str, text: Any, chosen: set[Any]) -> float:
    """The part of what a published value may stand for that is among the chosen ones."""
    values = [value for value in data.frame[name].to_list() if value is not None]
    missing = [None] if data.frame[name].null_count() else []
    if name in ("age", "height"):
        unit = 1.0 if name == "age" else 0.0
        if text is None:
            return 0.0
        ends = [min(values), max(values)] if text == "*" else [float(end) for end in text.strip("[]").split(", ")]
        low, high = max(ends[0], min(chosen)), min(ends[-1], max(chosen))
        if ends[-1] - ends[0] + unit == 0:
            return float(low <= high)
        return max(0.0, high - low + unit) / (ends[-1] - ends[0] + unit) if low <= high else 0.0
    if name == "job":
        region = [row[0] for row in UNBALANCED if text in row] + (missing if text == "*" else [])
    elif name == "zip":
        region = sorted({value for value in values if value.startswith(text.rstrip("*"))})
    else:
        region = sorted(set(values)) + missing if text == "*" else [None if one == "∅" else one for one in text.strip("{}").split(", ")] if text else [None]  # fmt: skip
    if text is None:
        return 0.0
    return sum(one in chosen for one in region) / len(region)


def naive_errors(
    data: Microdata, masked: pl.DataFrame, queries: int, attributes: int, selectivity: float, floor: float, seed: int
) -> list[float]:
    generator = np.random.default_rng(seed)
    errors = []
    for _ in range(queries):
        number = int(generator.integers(1, min(attributes, len(data.quasi)) + 1))
        picked: dict[str, set[Any]] = {}
        for a in sorted(generator.choice(len(data.quasi), number, replace=False).tolist()):
            name, domain = data.quasi[a], data.domains[a]
            if isinstance(domain, Interval):
                known: list[Any] = sorted(set(data.frame[name].drop_nulls().to_list()))
            else:
                known = [domain.taxonomy.labels[i] for i in range(domain.missing_code if domain.has_missing else domain.size)] if name in ("job", "zip") else list(domain.labels)  # type: ignore[union-attr]  # fmt: skip
            wanted = max(1, round(len(known) * selectivity ** (1 / number)))
            if isinstance(domain, Interval):
                begin = int(generator.integers(0, len(known) - wanted + 1))
                picked[name] = set(known[begin : begin + wanted])
            else:
                picked[name] = {known[i] for i in generator.choice(len(known), wanted, replace=False)}
        truth = sum(all(row[name] in some for name, some in picked.items()) for row in data.frame.iter_rows(named=True))
        estimate = 0.0
        for row in masked.iter_rows(named=True):
            if all(row[name] == "*" for name in data.quasi):
                parts = [len(some) / data.domains[data.quasi.index(name)].size for name, some in picked.items()]
            else:
                parts = [naive_part(data, name, row[name], some) for name, some in picked.items()]
            estimate += float(np.prod(parts))
        errors.append(abs(estimate - truth) / max(truth, floor * data.n, 1.0))
    return errors


@pytest.mark.parametrize(
    ("seed", "missing", "suppressed", "attributes", "selectivity", "floor"),
    [(0, 0.0, 0, 3, 0.1, 0.001), (1, 0.2, 0, 2, 0.3, 0.2), (2, 0.1, 3, 9, 0.5, 0.001), (3, 0.0, 2, 1, 1.0, 0.05)],
)
def test_answers_equal_those_counted_record_by_record(
    seed: int, missing: float, suppressed: int, attributes: int, selectivity: float, floor: float
) -> None:
    data = random_table(seed, 40, missing=missing)
    masked, _, _ = masked_of(data, partition_of(seed, 40, 9, suppressed=suppressed))
    expected = naive_errors(data, masked, 60, attributes, selectivity, floor, seed)
    found = query_error(
        data, masked, queries=60, attributes=attributes, selectivity=selectivity, floor=floor, seed=seed
    )
    assert found.queries == 60
    assert found.median == pytest.approx(np.median(expected), abs=1e-5)
    assert found.mean == pytest.approx(np.mean(expected), abs=1e-5)
    assert found.percentile_90 == pytest.approx(np.quantile(expected, 0.9), abs=1e-5)
    assert list(found.to_dict()) == ["queries", "median", "mean", "percentile_90"]


@pytest.mark.parametrize(
    "given", [{"selectivity": 0.0}, {"selectivity": 1.1}, {"selectivity": -1.0}, {"queries": 0}, {"attributes": 0}]
)
def test_queries_are_checked(given: dict[str, Any]) -> None:
    data = random_table(1, 20)
    with pytest.raises(ConfigError, match="queries and attributes must be at least 1 and selectivity in"):
        query_error(data, data.frame, **given)
    masked, _, _ = masked_of(data, partition_of(1, 20, 3))
    assert query_error(data, masked, queries=1, attributes=1, selectivity=1.0).mean >= 0


def labelled(n: int = 240) -> Microdata:
    random = np.random.default_rng(0)
    age = random.integers(20, 60, n)
    frame = pl.DataFrame(
        {"age": age, "town": [f"t{i}" for i in random.integers(0, 4, n)], "ill": np.where(age > 40, "gout", "flu")}
    )
    schema = {"age": {"role": "quasi"}, "town": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    return Microdata.from_frame(frame, schema)


def test_a_classifier_loses_what_generalization_took() -> None:
    data = labelled()
    order = np.lexsort((data.codes[:, 1], data.codes[:, 0]))
    labels = np.empty(data.n, dtype=np.int32)
    labels[order] = np.arange(data.n) // 12
    fine, _, _ = masked_of(data, shoal.Partition(labels))
    nothing, _, _ = masked_of(data, shoal.Partition(np.zeros(data.n, dtype=np.int32)))
    kept, lost = (classification(data, table, "ill", folds=3) for table in (fine, nothing))
    assert kept.original > 0.95
    assert kept.masked > 0.85 > kept.baseline
    assert lost.masked == pytest.approx(lost.baseline, abs=0.02)
    assert kept.kept > 0.7 > lost.kept
    assert classification(data, fine, "ill", folds=3) == kept


def test_only_a_column_published_unchanged_can_be_predicted() -> None:
    data = labelled(30)
    masked, _, _ = masked_of(data, shoal.Partition(np.zeros(30, dtype=np.int32)))
    with pytest.raises(InputError, match="'age' is not published unchanged"):
        classification(data, masked, "age")
    with pytest.raises(InputError, match="did you mean 'ill'"):
        classification(data, masked, "il")
    # What is masked is not offered.
    with pytest.raises(InputError, match="'tow' is not published unchanged; allowed: ill"):
        classification(data, masked, "tow")


class Seen:
    """A classifier that keeps what it is shown and always says the first class."""

    shown: list[tuple[np.ndarray, np.ndarray]] = []  # noqa: RUF012
    tested: list[np.ndarray] = []  # noqa: RUF012

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, x: np.ndarray, y: np.ndarray) -> Seen:
        Seen.shown.append((x, y))
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        Seen.tested.append(x)
        return np.zeros(len(x), dtype=np.int64)

    def score(self, x: np.ndarray, y: np.ndarray) -> float:
        return float((self.predict(x) == y).mean())

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def test_a_classifier_sees_both_ends_of_every_box() -> None:
    """The same features of both tables: ends of ranges, the members of sets; a suppressed record has none."""
    frame = pl.DataFrame(
        {
            "age": [20, 30, 40, 50, None, 60],
            "town": ["a", "b", "a", "c", "b", "c"],
            "job": ["nurse", "midwife", "clerk", "judge", "clerk", "farmer"],
            "ill": ["x", "y", "x", "y", None, "y"],
        }
    )
    schema = {
        "age": {"role": "quasi"},
        "town": {"role": "quasi"},
        "job": {"role": "quasi", "taxonomy": {"rows": UNBALANCED}},
        "ill": {"role": "other", "accept": "made up"},
    }
    data = Microdata.from_frame(frame, schema)
    masked = pl.DataFrame(
        {
            "age": ["[20, 30]", "[20, 30]", "[40, 55]", "[40, 55]", None, "*"],
            "town": ["{a, b}", "{a, b}", "{a, c}", "{a, c}", "b", "*"],
            "job": ["care", "care", "office", "office", "clerk", "*"],
            "ill": ["x", "y", "x", "y", None, "y"],
        }
    )
    Seen.shown.clear()
    Seen.tested.clear()
    found = classification(data, masked, "ill", folds=2, classifier=Seen())
    assert found.baseline == 3 / 5 and found.target == "ill"
    codes = {label: code for code, label in enumerate(data.domains[2].taxonomy.labels)}  # type: ignore[union-attr]
    nan = float("nan")
    before = {
        (row[0], row[0], *(float(row[1] == t) for t in "abc"), codes[row[2]], codes[row[2]])
        for row in frame.rows()
        if row[3]
    }
    care, office = sorted([codes["nurse"], codes["midwife"]]), sorted([codes["clerk"], codes["judge"]])
    after = {(20, 30, 0.5, 0.5, 0, *care), (40, 55, 0.5, 0, 0.5, *office), (nan,) * 7}
    for some, tables in ((before, Seen.shown[:2]), (after, Seen.shown[2:])):
        assert len(tables) == 2
        rows = {tuple(row) for x, _ in tables for row in np.nan_to_num(x, nan=-1.0).tolist()}
        assert rows == {tuple(np.nan_to_num(np.array(row, dtype=float), nan=-1.0).tolist()) for row in some}
    # The records whose value is missing are not asked for, and every other one is in one of the two folds.
    assert sorted(len(x) for x in Seen.tested[:2]) == [2, 3] == sorted(len(x) for x in Seen.tested[2:])


def test_a_forest_is_asked_where_no_classifier_is_given() -> None:
    data = labelled(60)
    same, _, _ = masked_of(data, shoal.Partition(np.arange(60, dtype=np.int32)), shuffle=False)
    found = classification(data, same, "ill", folds=2)
    assert found.original > 0.8 and found.masked > 0.8
    assert found == classification(data, same, "ill", folds=2)


def test_what_is_kept_of_the_gain() -> None:
    found = Classification("ill", original=0.9, masked=0.7, baseline=0.5)
    assert found.kept == pytest.approx(0.5) and found.to_dict()["kept"] == found.kept
    for original in (0.5, 0.4):
        none = Classification("ill", original=original, masked=0.7, baseline=0.5)
        assert np.isnan(none.kept) and none.to_dict()["kept"] is None


def test_too_little_to_predict() -> None:
    data = labelled(30)
    masked, _, _ = masked_of(data, shoal.Partition(np.zeros(30, dtype=np.int32)))
    with pytest.raises(InputError, match="30 records are too few for 31 folds"):
        classification(data, masked, "ill", folds=31)
    assert classification(data, masked, "ill", folds=30, classifier=Seen()).target == "ill"
    same = data.frame.with_columns(ill=pl.lit("flu"))
    one = Microdata.from_frame(
        same, {"age": {"role": "quasi"}, "town": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    )
    with pytest.raises(InputError, match="fewer than two values"):
        classification(one, masked.with_columns(ill=pl.lit("flu")), "ill")
    with pytest.raises(InputError, match="'gone' is not published unchanged"):
        classification(data, masked.with_columns(gone=pl.lit("x")), "gone")
    with pytest.raises(InputError, match="'ill' is not published unchanged"):
        classification(data, masked.drop("ill"), "ill")
