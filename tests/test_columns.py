"""Columns: text and numbers become what the schema says, codes mean what they should, and taxonomies are the declared ones."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.columns import (
    by_count,
    code,
    declared_taxonomy,
    is_named,
    numbers_of,
    ranks,
    sensitive_taxonomy,
    texts,
    told_apart,
    typed,
)
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, InternalError
from shoal.schema import Attribute, Schema
from shoal.taxonomy import Taxonomy


def attribute(**more: Any) -> Attribute:
    return Attribute.model_validate({"role": "quasi", **more})


def read(values: list[Any], **more: Any) -> tuple[list[Any], str]:
    series, kind = typed(pl.Series("a", values), attribute(**more))
    return series.to_list(), kind


# -- kinds


def test_kinds_are_told_from_the_values() -> None:
    assert read([1, None, 3]) == ([1.0, None, 3.0], "number")
    assert read([0.5, 2.0]) == ([0.5, 2.0], "number")
    assert read(["1", "b", None]) == (["1", "b", None], "category")
    assert read([date(2024, 3, 31), None]) == ([date(2024, 3, 31), None], "date")
    assert read([datetime(2024, 3, 31, 23, 59), None]) == ([date(2024, 3, 31), None], "date")
    assert read([True, None]) == (["true", None], "category")


def test_an_order_or_a_prefix_makes_numbers_categories() -> None:
    assert read([1, 2, None], order=["2", "1"]) == (["1", "2", None], "category")
    assert read([41076.0, 41075.0], taxonomy={"prefix": [3, 0]}) == (["41076", "41075"], "category")
    assert read([1, 2], taxonomy={"intervals": [5]}) == ([1.0, 2.0], "number")


def test_a_declared_kind_is_obeyed() -> None:
    assert read([7.0, 0.5, None], kind="category") == (["7", "0.5", None], "category")
    assert read(["1", "2.5", None], kind="number") == ([1.0, 2.5, None], "number")
    assert read([True, False, None], kind="number") == ([1.0, 0.0, None], "number")
    assert read(["2024-02-29", None], kind="date") == ([date(2024, 2, 29), None], "date")
    assert read([5], kind="category", order=["5"]) == (["5"], "category")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["1", "two", None, "three"], "number", r"'a', record 2: 'two' is not a number \(2 such values\)"),
        (["x", "2"], "number", r"'a', record 1: 'x' is not a number \(1 such values\)"),
        (["2024-02-30"], "date", "record 1: '2024-02-30' is not a date such as 2024-03-31"),
        (["31.03.2024"], "date", 'list them under \\[source\\] missing, or declare kind = "category"'),
        ([1.0, None, float("nan")], None, "record 3: nan is not a finite number"),
        ([float("-inf"), 2.0], None, "record 1: -inf is not a finite number"),
    ],
)
def test_what_does_not_fit_is_shown(values: list[Any], kind: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(values, kind=kind)


@pytest.mark.parametrize("value", [2**53 + 2, -(2**53) - 2])
def test_whole_numbers_that_floats_mix_up_are_refused(value: int) -> None:
    assert read([2**53, -(2**53)])[1] == "number"
    assert read([float(value)])[1] == "number"  # a float never held more
    with pytest.raises(InputError, match=r"'a' holds whole numbers beyond 2\^53"):
        read([value, 1])


def test_numbers_are_labelled_as_people_write_them() -> None:
    assert texts(pl.Series([7.0, 0.5, None]), "number").to_list() == ["7", "0.5", None]
    assert texts(pl.Series([7, None]), "number").to_list() == ["7", None]
    assert texts(pl.Series([date(2024, 3, 31)]), "date").to_list() == ["2024-03-31"]

    nothing = texts(pl.Series([None, None], dtype=pl.Float64), "number")
    assert (nothing.dtype, nothing.to_list()) == (pl.String, [None, None])


# -- what a reader tells apart


def told(values: list[Any], known: tuple[str, ...] = (), **more: Any) -> Any:
    return told_apart(pl.Series("a", values, dtype=pl.String), "a", attribute(**more), known)


def test_values_that_look_alike_are_one_value() -> None:
    """A class whose members all have the flu is not diverse because one of them was written with a capital."""
    found = told(["flu", "Flu", "flu", "cold", "n/a", None, "fever", "fever ", "fever "])
    assert found.labels == ("fever ", "flu", "cold")
    assert found.code_of == {"fever ": 0, "fever": 0, "flu": 1, "Flu": 1, "cold": 2, "n/a": -1}
    assert found.joined == [["fever ", "fever"], ["flu", "Flu"]] and found.blank == ["n/a"]


def test_declared_values_are_told_apart_as_declared() -> None:
    found = told(["high", "low", "?", None, "low"], order=["low", "Low", "high"])
    assert (found.labels, found.code_of) == (("low", "Low", "high"), {"low": 0, "?": -1, "high": 2})
    assert found.joined == [] and found.blank == ["?"]
    groups = {"categories": {"secret": ["HIV"], "plain": ["flu", "Flu"]}}
    assert told(["Flu", "flu", "flu"], **groups).labels == ("flu", "Flu")
    assert told(["Flu", "flu", "flu"], known=("Flu", "flu", "cold")).labels == ("flu", "Flu")


@pytest.mark.parametrize(
    ("known", "more", "message"),
    [
        ((), {"order": ["flu", "cold"]}, r"'a': the order does not know 'Flu' \(2 records\) and 1 more values; add it"),
        (("flu", "fever"), {}, r"'a': the taxonomy does not know 'Flu' \(2 records\) and 1 more values; add it"),
        (
            (),
            {"categories": {"plain": ["flu", "Flu", "cold"]}},
            r"the list of categories does not know 'fever' \(1 record\);",
        ),
        (
            ("flu", "Flu", "cold"),
            {"categories": {"plain": ["flu"]}},
            r"the taxonomy does not know 'fever' \(1 record\);",
        ),
        (("flu",), {"order": ["flu", "Flu", "cold"]}, r"the order does not know 'fever' \(1 record\);"),
    ],
)
def test_a_spelling_that_was_not_declared_adds_no_diversity(
    known: tuple[str, ...], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        told(["flu", "flu", "flu", "Flu", "Flu", "cold", "fever", None, "n/a"], known, **more)


# -- codes


def test_codes_are_places_among_the_labels() -> None:
    series = pl.Series(["b", None, "a", "b"])
    assert code(series, ["a", "b"], "x", "column").tolist() == [1, 2, 0, 1]
    assert code(series, ["a", "b"], "x", "column", missing=-1).tolist() == [1, -1, 0, 1]
    assert code(series, ["c", "b", "a"], "x", "column", missing=0).tolist() == [1, 0, 2, 1]
    assert code(pl.Series([None, None], dtype=pl.String), [], "x", "column").tolist() == [0, 0]
    assert code(pl.Series(["b"]), ["a", "b"], "x", "column").flags.writeable


def test_a_value_that_was_not_declared_is_refused() -> None:
    """An undeclared value has no place in an order; to give it any would change what intervals say."""
    series = pl.Series(["low", "tiny", "huge", "tiny", None])
    with pytest.raises(InputError, match=r"'x': the order does not know 'huge' \(1 record\) and 1 more values; add it"):
        code(series, ["low", "high"], "x", "order")
    with pytest.raises(InputError, match=r"the order does not know 'tiny' \(2 records\); add it"):
        code(series, ["low", "high", "huge"], "x", "order")


def test_labels_by_how_often_they_occur() -> None:
    assert by_count(pl.Series("x", ["b", "a", None, "b", "c", "a", "d"])) == ["a", "b", "c", "d"]


def test_ranks_among_the_distinct_numbers() -> None:
    codes, values = ranks(pl.Series([3.5, None, -1.0, 3.5, 0.0]))
    assert codes.tolist() == [2, 3, 0, 2, 1]
    assert values.tolist() == [-1.0, 0.0, 3.5]
    codes, values = ranks(pl.Series([2.0, 1.0]))
    assert (codes.tolist(), values.tolist()) == ([1, 0], [1.0, 2.0])


def test_dates_are_days() -> None:
    assert numbers_of(pl.Series([date(1970, 1, 2), None])).to_list() == [1.0, None]
    assert numbers_of(pl.Series([3, None])).to_list() == [3.0, None]


# -- taxonomies


def declared(values: list[Any], folder: Path = Path(), **more: Any) -> Taxonomy:
    schema = Schema({"a": attribute(**more)}, folder)
    table = pl.DataFrame({"a": values})
    series, kind = typed(table["a"], schema.attributes["a"])
    return declared_taxonomy(table, series, kind, "a", schema)


def test_the_declared_taxonomy_is_the_one_that_is_used(tmp_path: Path) -> None:
    own = Taxonomy.from_rows([["x", "*"], ["y", "*"]])
    assert declared(["x"], taxonomy=own) is own
    own.write(tmp_path / "own.csv")
    assert declared(["x"], tmp_path, taxonomy="own.csv") == own
    with pytest.raises(ConfigError, match=r"\[attributes.a\] taxonomy: there is no file '.*none.csv'"):
        declared(["x"], tmp_path, taxonomy="none.csv")
    assert declared(["x", "y"], taxonomy={"rows": [["x", "*"], ["y", "*"]]}) == own
    assert declared(["x", "y"], taxonomy={"parents": {"x": "*", "y": "*"}}) == own


def paths(tree: Taxonomy) -> list[tuple[str, ...]]:
    return [tree.path(leaf) for leaf in range(tree.leaves)]


def test_rules_build_from_the_values_that_occur() -> None:
    assert paths(declared(["4107", None, "41", "4107"], taxonomy={"prefix": [2, 0]})) == [
        ("41", "41**", "****"),
        ("4107", "41**", "****"),
    ]
    assert paths(declared([7, None, 12], taxonomy={"intervals": [5]})) == [
        ("7", "[5, 9]", "*"),
        ("12", "[10, 14]", "*"),
    ]
    assert paths(declared([7, 12], taxonomy={"edges": [[0, 10, 20]]})) == [
        ("7", "[0, 9]", "*"),
        ("12", "[10, 20]", "*"),
    ]
    days = [date(2024, 3, 31), None, date(2023, 1, 1)]
    assert paths(declared(days, taxonomy={"dates": ["year"]})) == [
        ("2023-01-01", "2023", "*"),
        ("2024-03-31", "2024", "*"),
    ]


def test_automatic_taxonomies_of_numbers_and_dates() -> None:
    days = declared([date(2024, 3, 31), date(2024, 4, 1)], taxonomy="auto")
    assert paths(days)[0] == ("2024-03-31", "2024-03", "2024", "*")
    # Halves have equally many records, not values: 1 occurs as often as all others together.
    numbers = declared([1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0, None], taxonomy="auto")
    assert paths(numbers)[0] == ("1", "*") and paths(numbers)[4] == ("5", "[4, 5]", "[2, 5]", "*")


@pytest.mark.parametrize(
    ("values", "source", "message"),
    [
        (["x"], {"dates": ["year"]}, 'dates need kind = "date"'),
        (["x"], {"intervals": [5]}, 'intervals need kind = "number"'),
        ([date(2024, 1, 1)], {"edges": [[0, 1]]}, 'intervals need kind = "number"'),
    ],
)
def test_a_rule_for_another_kind_is_refused(values: list[Any], source: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[attributes.a\] taxonomy: {message}"):
        declared(values, taxonomy=source)


@pytest.mark.parametrize("source", [{"intervals": []}, {"edges": [[5, 1]]}, {"intervals": [-1]}])
def test_a_rule_that_makes_no_sense_is_refused_by_its_column(source: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="Taxonomy 'a'"):
        declared([1, 2, 7], taxonomy=source)


def test_a_column_without_a_taxonomy_has_none_to_give() -> None:
    with pytest.raises(InternalError, match="column 'a' declares no taxonomy"):
        declared(["x"])


def neighbours(tree: Taxonomy, label: str) -> set[str]:
    """The leaves under the lowest node above a leaf."""
    node = int(tree.parent[tree.code(label)])
    return set(tree.labels[tree.first[node] : tree.last[node] + 1])


@pytest.mark.parametrize("companion", ["category", "number", "date", "holes"])
def test_categories_that_occur_with_the_same_things_are_near(companion: str) -> None:
    """a, c and e go with one kind of record, b, d and f with the other; the secret says the opposite and is not asked."""
    random = np.random.default_rng(5)
    label = random.integers(0, 6, 900)
    side = label % 2
    kinds: dict[str, list[Any]] = {
        "category": [f"{s}{i}" for s, i in zip(side, random.integers(0, 3, 900), strict=True)],
        "number": (side * 500 + random.integers(0, 300, 900)).tolist(),
        "date": [
            date(1990 + 20 * int(s), 1 + int(m), 1) for s, m in zip(side, random.integers(0, 12, 900), strict=True)
        ],
        "holes": [None if s else f"{i}" for s, i in zip(side, random.integers(0, 50, 900), strict=True)],
    }
    frame = pl.DataFrame(
        {
            "a": [None if i % 90 == 7 else "abcdef"[i] for i in label.tolist()],
            "b": kinds[companion],
            "secret": [str(s // 3) for s in label.tolist()],
        }
    )
    schema = read_schema(
        {"a": {"role": "quasi", "taxonomy": "auto"}, "b": {"role": "quasi"}, "secret": {"role": "sensitive"}}
    )
    series, kind = typed(frame["a"], schema.attributes["a"])
    tree = declared_taxonomy(frame, series, kind, "a", schema)
    assert neighbours(tree, "a") <= {"a", "c", "e"} and neighbours(tree, "b") <= {"b", "d", "f"}
    assert len(neighbours(tree, "a")) > 1


def test_a_single_quasi_identifier_has_nothing_to_go_by() -> None:
    tree = declared(["x", "y", "x", None], taxonomy="auto")
    assert paths(tree) == [("x", "*"), ("y", "*")]


# -- taxonomies of sensitive attributes


def secret_tree(labels: list[str], kind: str, source: Any) -> Taxonomy | None:
    return sensitive_taxonomy(labels, kind, "a", read_schema({"a": {"role": "sensitive", "taxonomy": source}}))


def test_whoever_has_the_values_makes_the_same_taxonomy() -> None:
    """From the values alone, in whatever order: a reader of the masked table has no more."""
    assert secret_tree(["x"], "category", None) is None
    numbers = secret_tree(["9", "10", "2", "0.5", "30"], "number", "auto")
    assert numbers is not None and numbers == secret_tree(["30", "2", "0.5", "9", "10"], "number", "auto")
    # By their size, not their spelling, and the middle value in the middle: nothing is known of how often each occurs.
    assert paths(numbers)[2:4] == [("9", "[9, 30]", "*"), ("10", "[9, 30]", "*")]
    days = secret_tree(["2024-03-31", "2023-01-01"], "date", "auto")
    assert days is not None and paths(days)[1] == ("2024-03-31", "2024-03", "2024", "*")
    widths = secret_tree(["7", "12"], "number", {"intervals": [5]})
    assert widths is not None and paths(widths)[0] == ("7", "[5, 9]", "*")
    years = secret_tree(["2024-03-31"], "date", {"dates": ["year"]})
    assert years is not None and paths(years) == [("2024-03-31", "2024", "*")]


def test_codes_of_one_chapter_are_near() -> None:
    codes = ["J45.0", "J45.1", "J45.9", "F32.1", "F32.2", "f33.2"]
    tree = secret_tree(codes, "category", "auto")
    assert tree is not None and tree == secret_tree(codes[::-1], "category", "auto")
    assert neighbours(tree, "J45.0") <= {"J45.0", "J45.1", "J45.9"} and len(neighbours(tree, "J45.0")) > 1
    assert neighbours(tree, "F32.1") <= {"F32.1", "F32.2", "f33.2"}


def test_a_taxonomy_made_of_no_values_is_none() -> None:
    rows = {"rows": [["x", "*"], ["y", "*"]]}
    own = Taxonomy.from_rows(rows["rows"])
    for source in (rows, {"parents": {"x": "*", "y": "*"}}, own):
        assert secret_tree([], "category", source) == own
        assert is_named(read_schema({"a": {"role": "sensitive", "taxonomy": source}}).attributes["a"].taxonomy)
    for source in ("auto", {"prefix": [1]}, {"intervals": [5]}):
        assert secret_tree([], "category", source) is None
        assert not is_named(read_schema({"a": {"role": "sensitive", "taxonomy": source}}).attributes["a"].taxonomy)
    assert is_named("file.csv") and not is_named(None)
