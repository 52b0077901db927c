"""Taxonomies: the tree itself, its readers, and everything that builds one."""

from __future__ import annotations

import csv
import dataclasses
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import ConfigError, InputError, InternalError
from shoal.taxonomy import Taxonomy
from shoal.taxonomy_build import (
    auto_categories,
    auto_numbers,
    from_dates,
    from_intervals,
    from_prefixes,
    number_label,
)

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
ADULT = DATA / "adult" / "taxonomies"
needs_adult = pytest.mark.skipif(not ADULT.is_dir(), reason=f"no Adult taxonomies at {ADULT}: set SHOAL_DATA")

ROWS = [
    ("colon", "cancer", "*"),
    ("flu", "*"),
    ("breast", "cancer", "*"),
    ("lobar", "pneumonia", "lung", "*"),
]


@pytest.fixture
def tree() -> Taxonomy:
    return Taxonomy.from_rows(ROWS, "disease")


def naive_lca(rows: list[tuple[str, ...]], members: list[str]) -> tuple[str, ...]:
    """The longest common path to the root, by comparing the rows from the root down."""
    paths = [next(row for row in rows if row[0] == member)[::-1] for member in members]
    if len(set(members)) == 1:
        return paths[0][::-1]
    common: list[str] = []
    for labels in zip(*paths, strict=False):
        if len(set(labels)) > 1:
            break
        common.append(labels[0])
    return tuple(common[::-1])


@st.composite
def random_rows(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Ragged rows of a random tree; an inner label is the path to the root, so that no two nodes share one."""
    inner = draw(st.lists(st.lists(st.sampled_from("abc"), max_size=4), min_size=1, max_size=14))
    return [(f"leaf{i}", *("".join(path[j:]) for j in range(len(path))), "*") for i, path in enumerate(inner)]


@st.composite
def careless_rows(draw: st.DrawFn) -> list[tuple[str, ...]]:
    """Ragged rows whose inner labels repeat freely; leaf labels do not."""
    inner = draw(st.lists(st.lists(st.sampled_from("abc"), max_size=3), min_size=1, max_size=6))
    return [(f"leaf{i}", *path, "*") for i, path in enumerate(inner)]


class TestTree:
    def test_numbering(self, tree: Taxonomy) -> None:
        assert tree.labels == ("colon", "breast", "flu", "lobar", "cancer", "pneumonia", "lung", "*")
        assert tree.parent.tolist() == [4, 4, 7, 5, 7, 6, 7, -1]
        assert tree.first.tolist() == [0, 1, 2, 3, 0, 3, 3, 0]
        assert tree.last.tolist() == [0, 1, 2, 3, 1, 3, 3, 3]
        assert tree.height.tolist() == [0, 0, 0, 0, 1, 1, 2, 3]
        assert tree.depth.tolist() == [2, 2, 1, 3, 1, 2, 1, 0]
        assert tree.leaf_counts.tolist() == [1, 1, 1, 1, 2, 1, 1, 4]
        assert (tree.leaves, tree.nodes, tree.root, tree.levels) == (4, 8, 7, 4)
        assert tree.leaf_codes == {"colon": 0, "breast": 1, "flu": 2, "lobar": 3}
        assert repr(tree) == "Taxonomy('disease', 4 leaves, 4 levels)"

    def test_arrays_cannot_be_changed(self, tree: Taxonomy) -> None:
        again = pickle.loads(pickle.dumps(tree))
        assert again == tree
        assert hash(again) == hash(tree)
        for taxonomy in (tree, again):
            with pytest.raises(ValueError, match="read-only"):
                taxonomy.parent[0] = 1
            with pytest.raises(dataclasses.FrozenInstanceError):
                taxonomy.root = 0  # type: ignore[misc]

    def test_code_and_node(self, tree: Taxonomy) -> None:
        assert tree.code("flu") == 2
        with pytest.raises(KeyError):
            tree.code("cancer")
        assert tree.node("cancer") == 4
        assert tree.node("lobar") == 3
        with pytest.raises(ConfigError, match=r"'disease' has no value 'cancr'; did you mean 'cancer'\?"):
            tree.node("cancr")

    def test_node_takes_the_highest_of_a_chain(self) -> None:
        tree = Taxonomy.from_rows([("Bachelors", "Bachelors", "*"), ("Masters", "Graduate", "*")])
        assert tree.code("Bachelors") == 0
        assert tree.path(tree.node("Bachelors")) == ("Bachelors", "*")
        assert tree.height[tree.node("Bachelors")] == 1

    @given(careless_rows())
    def test_a_label_means_one_set_of_leaves_or_is_refused(self, rows: list[tuple[str, ...]]) -> None:
        below: dict[tuple[str, ...], set[str]] = {}  # by the path to the root
        for row in rows:
            for j in range(len(row)):
                below.setdefault(row[j:], set()).add(row[0])
        meanings: dict[str, set[frozenset[str]]] = {}
        for path, leaves in below.items():
            meanings.setdefault(path[0], set()).add(frozenset(leaves))
        unclear = {label for label, sets in meanings.items() if len(sets) > 1}
        if not unclear:
            tree = Taxonomy.from_rows(rows)
            assert sorted(tree.rows()) == sorted(rows)
            return
        with pytest.raises(ConfigError) as refused:
            Taxonomy.from_rows(rows)
        label, one, two = re.findall(r"'([^']*)'", str(refused.value))[1:]
        assert label in unclear
        assert one != two
        assert {tuple(one.split(";")), tuple(two.split(";"))} <= set(rows)

    def test_path_and_rows(self, tree: Taxonomy) -> None:
        assert tree.path(3) == ("lobar", "pneumonia", "lung", "*")
        assert tree.path(tree.root) == ("*",)
        assert sorted(tree.rows()) == sorted(ROWS)

    def test_covers(self, tree: Taxonomy) -> None:
        leaves = np.arange(4)
        assert tree.covers(tree.node("cancer"), leaves).tolist() == [True, True, False, False]
        assert tree.covers(np.array([2, 6, 7]), np.array([3, 3, 3])).tolist() == [False, True, True]
        assert bool(tree.covers(2, 2))

    def test_constructor_refuses_what_is_not_canonical(self) -> None:
        with pytest.raises(InternalError, match="rooted"):
            Taxonomy((), np.array([], dtype=np.int32))
        with pytest.raises(InternalError, match="before its parent"):
            Taxonomy(("a", "*", "b"), np.array([1, 0, -1], dtype=np.int32))
        with pytest.raises(InternalError, match="depth-first"):
            Taxonomy(("a", "b", "c", "x", "*"), np.array([3, 4, 3, 4, -1], dtype=np.int32))
        with pytest.raises(InternalError, match="same label"):
            Taxonomy(("a", "a", "*"), np.array([2, 2, -1], dtype=np.int32))


class TestLowestCommonAncestor:
    @settings(max_examples=150)
    @given(random_rows(), st.data())
    def test_equals_the_naive_twin(self, rows: list[tuple[str, ...]], data: st.DataObject) -> None:
        tree = Taxonomy.from_rows(rows)
        leaf = st.sampled_from([row[0] for row in rows])
        sets = data.draw(st.lists(st.lists(leaf, min_size=1, max_size=4), min_size=1, max_size=10))
        codes = [[tree.code(label) for label in members] for members in sets]
        low, high = np.array([min(c) for c in codes]), np.array([max(c) for c in codes])
        nodes = tree.lca(low, high)
        assert nodes.dtype == np.int32
        for members, node, lo, hi in zip(sets, nodes, low, high, strict=True):
            assert tree.path(int(node)) == naive_lca(rows, members)
            assert tree.lca(lo, hi) == node
            assert tree.lca(hi, lo) == node

    def test_shapes(self, tree: Taxonomy) -> None:
        assert tree.lca(np.array([], dtype=np.int32), np.array([], dtype=np.int32)).shape == (0,)
        pairs = tree.lca(np.array([[0, 0], [1, 2]]), np.array([[0, 1], [3, 2]]))
        assert pairs.tolist() == [[0, 4], [7, 2]]
        assert isinstance(tree.lca(0, 1), int)

    def test_leaf_is_its_own_below_a_chain(self, tree: Taxonomy) -> None:
        assert tree.lca(3, 3) == 3

    def test_does_not_touch_its_arguments(self, tree: Taxonomy) -> None:
        low = np.array([0, 1], dtype=np.int32)
        tree.lca(low, np.array([3, 3], dtype=np.int32))
        assert low.tolist() == [0, 1]


class TestFullDomain:
    def test_unbalanced_is_padded_at_the_leaf(self, tree: Taxonomy) -> None:
        columns = [[tree.labels[node] for node in tree.ancestors_at(level)] for level in range(tree.levels)]
        assert columns == [
            ["colon", "breast", "flu", "lobar"],
            ["colon", "breast", "flu", "pneumonia"],
            ["cancer", "cancer", "flu", "lung"],
            ["*", "*", "*", "*"],
        ]

    @pytest.mark.parametrize("level", [-1, 4])
    def test_unknown_level(self, tree: Taxonomy, level: int) -> None:
        with pytest.raises(ConfigError, match=f"levels 0 to 3; level {level} does not exist"):
            tree.ancestors_at(level)

    @settings(max_examples=50)
    @given(random_rows())
    def test_every_level_is_above_the_one_before(self, rows: list[tuple[str, ...]]) -> None:
        tree = Taxonomy.from_rows(rows)
        before = tree.ancestors_at(0)
        assert before.tolist() == list(range(tree.leaves))
        for level in range(1, tree.levels):
            now = tree.ancestors_at(level)
            assert ((now == before) | (now == tree.parent[before])).all()
            before = now
        assert (before == tree.root).all()


class TestMissing:
    def test_is_the_last_leaf_under_the_root(self, tree: Taxonomy) -> None:
        more = tree.with_missing()
        assert more.leaves == tree.leaves + 1
        assert more.code("") == tree.leaves
        assert more.path(tree.leaves) == ("", "*")
        assert list(more.rows())[:-1] == list(tree.rows())
        assert more.labels[more.lca(0, 1)] == "cancer"
        assert more.lca(0, more.leaves - 1) == more.root
        assert more.with_missing() is more

    def test_a_root_of_several_levels_stands_for_missing_too(self) -> None:
        tree = Taxonomy.from_rows([("a", "X", "*", "*"), ("b", "X", "*", "*"), ("c", "Y", "*", "*")]).with_missing()
        assert tree.path(tree.code("")) == ("", "*", "*")
        assert tree.labels[tree.lca(0, 2)] == "*"
        assert tree.with_missing() is tree

    def test_single_node(self) -> None:
        tree = Taxonomy.from_rows([("only",)])
        assert (tree.leaves, tree.root, tree.levels) == (1, 0, 1)
        assert tree.ancestors_at(0).tolist() == [0]
        more = tree.with_missing()
        assert more.labels == ("only", "", "*")
        assert more.levels == 2

    def test_inside_a_branch(self) -> None:
        tree = Taxonomy.from_rows([("", "A", "*"), ("x", "*")], "t")
        with pytest.raises(ConfigError, match="'t' puts the missing value inside a branch"):
            tree.with_missing()


class TestRows:
    def test_repeated_rows_and_order_of_appearance(self) -> None:
        tree = Taxonomy.from_rows([("b", "Y", "*"), ("a", "X", "*"), ("b", "Y", "*"), ("c", "Y", "*")])
        assert tree.labels[: tree.leaves] == ("b", "c", "a")

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([], "'t' is empty"),
            ([()], "'t' has an empty row"),
            ([("a", "*"), ("b", "all")], r"'t' has two roots, '\*' and 'all' \(of 'b'\)"),
            ([("a", "X", "*"), ("a", "Y", "*")], "'t' lists the leaf 'a' twice with different paths"),
            ([("a", "X", "*"), ("X", "*")], "'t' has a row for 'X', which is also the parent of 'a'"),
            ([("X", "*"), ("a", "X", "*")], "'t' has a row for 'X', which is also the parent of 'a'"),
            ([("*",), ("a", "*")], r"'t' has a row for '\*', which is also the parent of 'a'"),
            ([("a", "", "*")], "'t' has an inner node without a label"),
            # In two branches; a leaf and a group; the root and a group that was padded with its name.
            (
                [("x", "o", "A", "*"), ("y", "o", "B", "*")],
                r"'t': 'o' stands for .* rows 'x;o;A;\*' and 'y;o;B;\*'; give each",
            ),
            ([("o", "o", "*"), ("y", "o", "*"), ("z", "*")], r"'o' stands for .* rows 'o;o;\*' and 'y;o;\*'"),
            ([("a", "*", "*"), ("b", "B", "*")], r"'\*' stands for .* rows 'a;\*;\*' and 'b;B;\*'"),
        ],
    )
    def test_errors(self, rows: list[tuple[str, ...]], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Taxonomy.from_rows(rows, "t")


class TestParents:
    def test_equals_rows(self, tree: Taxonomy) -> None:
        parents = {"colon": "cancer", "cancer": "*", "flu": "*", "breast": "cancer"}
        parents |= {"lobar": "pneumonia", "pneumonia": "lung", "lung": "*"}
        assert Taxonomy.from_parents(parents) == tree
        assert Taxonomy.from_parents({"*": "", **parents}) == tree

    def test_single_node(self) -> None:
        assert Taxonomy.from_parents({"only": ""}).labels == ("only",)

    @pytest.mark.parametrize(
        ("parents", "message"),
        [
            ({}, "'t' is empty"),
            ({"a": "*", "b": "all"}, r"'t' has two roots, '\*' and 'all'"),
            ({"a": "", "b": ""}, "'t' has two roots, 'a' and 'b'"),
            ({"a": "a"}, "'t' runs in a circle: 'a' → 'a'"),
            ({"x": "*", "a": "b", "b": "c", "c": "b"}, "'t' runs in a circle: 'b' → 'c' → 'b'"),
        ],
    )
    def test_errors(self, parents: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Taxonomy.from_parents(parents, "t")


class TestFiles:
    @pytest.mark.parametrize(
        "text",
        [
            "colon;cancer;*\nflu;*\nbreast;cancer;*\nlobar;pneumonia;lung;*\n",
            "\ufeffcolon;cancer;*\r\nflu;*\r\n\r\nbreast ; cancer;*\r\nlobar;pneumonia;lung;*",
            "colon,cancer,*,\nflu,,*,\nbreast,cancer,*,\nlobar,pneumonia,lung,*\n",
            "colon\tcancer\t*\nflu\t*\nbreast\tcancer\t*\nlobar\tpneumonia\tlung\t*\n",
            "leaf;group;root\ncolon;cancer;*\nflu;;*\nbreast;cancer;*\nlobar;pneumonia;lung;*\n",
            "child;parent\ncolon;cancer\ncancer;*\nflu;*\nbreast;cancer\nlobar;pneumonia\npneumonia;lung\nlung;*\n",
            "Value,Parent\n*\ncolon,cancer\ncancer,*\nflu,*\nbreast,cancer\nlobar,pneumonia\npneumonia,lung\nlung,*",
        ],
    )
    def test_formats(self, tmp_path: Path, tree: Taxonomy, text: str) -> None:
        path = tmp_path / "disease.csv"
        path.write_bytes(text.encode())
        read = Taxonomy.read(path)
        assert read == tree
        assert read.name == "disease.csv"

    def test_separators_inside_labels(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text('"a;b",X,*\nc,X,*\n', encoding="utf-8")
        assert Taxonomy.read(str(path)).labels == ("a;b", "c", "X", "*")
        path.write_text("20;[20, 24];*\n31;[30, 34];*\n", encoding="utf-8")
        assert Taxonomy.read(path).path(0) == ("20", "[20, 24]", "*")

    @pytest.mark.parametrize(
        "rows",
        [
            ROWS,
            [("a;b", "c, d", "*"), ('say "hi"', "c, d", "*"), ("ünï", "*")],
            [("a, b",)],
            [("a", "a", "*"), ("b", "*"), ("", "*")],
        ],
    )
    def test_round_trip(self, tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
        tree = Taxonomy.from_rows(rows)
        tree.write(tmp_path / "t.csv")
        assert Taxonomy.read(tmp_path / "t.csv") == tree

    def test_errors(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"'.*absent\.csv' cannot be read"):
            Taxonomy.read(tmp_path / "absent.csv")
        path = tmp_path / "t.csv"
        path.write_bytes(b"caf\xe9;*\n")
        with pytest.raises(InputError, match="not UTF-8"):
            Taxonomy.read(path)
        path.write_text("\n\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"'t\.csv' is empty"):
            Taxonomy.read(path)
        path.write_text("child;parent\na;b\na;c\nb;*\nc;*\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="gives 'a' two parents, 'b' and 'c'"):
            Taxonomy.read(path)
        path.write_text("a" * 200_000 + ";*\n", encoding="utf-8")
        with pytest.raises(InputError, match="cannot be parsed"):
            Taxonomy.read(path)

    @needs_adult
    def test_adult(self, tmp_path: Path) -> None:
        levels = {}
        for path in sorted(ADULT.glob("*.csv")):
            with path.open(encoding="utf-8") as file:
                rows = [tuple(row) for row in csv.reader(file, delimiter=";")]
            tree = Taxonomy.read(path)
            assert sorted(tree.rows()) == sorted(set(rows))
            columns = [[tree.labels[n] for n in tree.ancestors_at(level)] for level in range(tree.levels)]
            assert sorted(zip(*columns, strict=True)) == sorted(set(rows))
            tree.write(tmp_path / path.name)
            assert Taxonomy.read(tmp_path / path.name) == tree
            levels[path.stem] = tree.levels
        # The numbers of levels these files are known by.
        quoted = {
            "workclass": 3,
            "education": 4,
            "native-country": 3,
            "marital-status": 3,
            "sex": 2,
            "race": 2,
        }
        assert quoted.items() <= levels.items()


class TestPrefixes:
    def test_levels(self) -> None:
        tree = from_prefixes(["48201", "41076", "41099", "41076", "41176"], [3, 2, 0])
        assert list(tree.rows()) == [
            ("41076", "410**", "41***", "*****"),
            ("41099", "410**", "41***", "*****"),
            ("41176", "411**", "41***", "*****"),
            ("48201", "482**", "48***", "*****"),
        ]

    def test_different_lengths_share_the_root(self) -> None:
        tree = from_prefixes(["AB1", "ABCDE", "A"], [4, 2])
        assert list(tree.rows()) == [
            ("A", "A****", "A****", "*****"),
            ("AB1", "AB1**", "AB***", "*****"),
            ("ABCDE", "ABCD*", "AB***", "*****"),
        ]

    def test_levels_that_keep_everything_are_the_leaf(self) -> None:
        assert from_prefixes(["12", "13"], [3, 2, 1]) == from_prefixes(["12", "13"], [1, 0])

    @pytest.mark.parametrize("keep", [[], [2, 3], [3, 3], [2, -1]])
    def test_keep_must_fall(self, keep: list[int]) -> None:
        with pytest.raises(ConfigError, match=r"'zip': prefix = .* must fall"):
            from_prefixes(["41076"], keep, "zip")

    def test_no_values(self) -> None:
        with pytest.raises(ConfigError, match="no values"):
            from_prefixes([], [1])

    def test_many(self) -> None:
        tree = from_prefixes([f"{value:05d}" for value in range(40_000)], [3, 2, 0])
        assert (tree.leaves, tree.nodes) == (40_000, 40_000 + 400 + 40 + 1)
        assert tree.labels[tree.lca(0, 999)] == "00***"


class TestIntervals:
    def test_integers(self) -> None:
        tree = from_intervals(np.array([25.0, 21, 24, 40, -3]), widths=[5, 20])
        assert list(tree.rows()) == [
            ("-3", "[-5, -1]", "[-20, -1]", "*"),
            ("21", "[20, 24]", "[20, 39]", "*"),
            ("24", "[20, 24]", "[20, 39]", "*"),
            ("25", "[25, 29]", "[20, 39]", "*"),
            ("40", "[40, 44]", "[40, 59]", "*"),
        ]

    def test_reals_and_origin(self) -> None:
        tree = from_intervals([0.3, 0.25, 1.0], widths=[0.1, 0.5], origin=0.05)
        assert list(tree.rows()) == [
            ("0.25", "[0.25, 0.35)", "[0.05, 0.55)", "*"),
            ("0.3", "[0.25, 0.35)", "[0.05, 0.55)", "*"),
            ("1", "[0.95, 1.05)", "[0.55, 1.05)", "*"),
        ]

    @pytest.mark.parametrize("tenths", range(1, 40))
    def test_a_lower_end_belongs_to_its_interval(self, tenths: int) -> None:
        value = float(f"{tenths / 10:.1f}")
        tree = from_intervals([value, 0.05], widths=[0.1])
        assert tree.path(tree.code(number_label(value)))[1].startswith(f"[{number_label(value)}, ")

    def test_width_one_is_the_leaf(self) -> None:
        assert from_intervals([1, 2, 7], widths=[1, 5]) == from_intervals([1, 2, 7], widths=[5])

    def test_edges(self) -> None:
        tree = from_intervals([17, 18, 65, 120, 3], edges=[[0, 18, 65, 120], [0, 65, 120]])
        assert list(tree.rows()) == [
            ("3", "[0, 17]", "[0, 64]", "*"),
            ("17", "[0, 17]", "[0, 64]", "*"),
            ("18", "[18, 64]", "[0, 64]", "*"),
            ("65", "[65, 120]", "[65, 120]", "*"),
            ("120", "[65, 120]", "[65, 120]", "*"),
        ]
        assert from_intervals([0.5, 3], edges=[[0, 1, 3]]).path(1) == ("3", "[1, 3]", "*")

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: from_intervals([1.0], widths=[5, 12]), "width 12 must be a multiple"),
            (lambda: from_intervals([1.0], widths=[5, 5]), "width 5 must be a multiple"),
            (lambda: from_intervals([1.0], widths=[0]), "must be positive"),
            (lambda: from_intervals([1.0], widths=[]), "must be positive"),
            (lambda: from_intervals([1.0]), "either widths or edges"),
            (lambda: from_intervals([1.0], widths=[1], edges=[[0, 1]]), "either widths or edges"),
            (lambda: from_intervals([], widths=[1]), "no values"),
            (lambda: from_intervals([np.nan], widths=[1]), "cannot place the value nan"),
            (lambda: from_intervals([1.0], edges=[]), "at least one list of edges"),
            (lambda: from_intervals([1.0], edges=[[3, 1]]), "two or more rising"),
            (lambda: from_intervals([1.0], edges=[[0, 2, 4], [0, 3, 4]]), "must be some of the finer"),
            (lambda: from_intervals([1.0], edges=[[0, 2, 4], [0, 2]]), "with both ends"),
            (lambda: from_intervals([9.0], edges=[[0, 2, 4]]), "value 9 lies outside the edges 0 to 4"),
        ],
    )
    def test_errors(self, build: Callable[[], Taxonomy], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            build()

    def test_number_label(self) -> None:
        numbers = [3.0, -0.0, 0.1, 1e300, 2.0**53, float(np.float64(7.25))]
        assert [number_label(number) for number in numbers[:3]] == ["3", "0", "0.1"]
        assert [float(number_label(number)) for number in numbers] == numbers


class TestDates:
    def test_all_units(self) -> None:
        tree = from_dates(["2021-12-31", "1999-01-01"], ["day", "month", "quarter", "year", "decade"])
        assert list(tree.rows()) == [
            ("1999-01-01", "1999-01", "1999-Q1", "1999", "1990s", "*"),
            ("2021-12-31", "2021-12", "2021-Q4", "2021", "2020s", "*"),
        ]

    def test_quarters_hold_three_months(self) -> None:
        tree = from_dates([f"2020-{month:02d}-15" for month in range(1, 13)], ["quarter"])
        assert [tree.path(code)[1] for code in range(12)] == [f"2020-Q{q}" for q in (1, 2, 3, 4) for _ in "abc"]

    @pytest.mark.parametrize("units", [[], ["year", "month"], ["week"], ["year", "year"]])
    def test_units(self, units: list[str]) -> None:
        with pytest.raises(ConfigError, match="must be taken in this order from day, month"):
            from_dates(["2021-01-01"], units)

    @pytest.mark.parametrize("value", ["2021-02-30", "20210301", "03/01/2021", ""])
    def test_not_a_date(self, value: str) -> None:
        with pytest.raises(ConfigError, match=f"'{value}' is not a date"):
            from_dates([value], ["year"])


class TestAutoNumbers:
    def test_nested_tight_and_even(self) -> None:
        values = np.arange(17.0, 91.0)
        counts = np.random.default_rng(3).integers(50, 100, len(values))
        tree = auto_numbers(values, counts)
        assert tree.labels[: tree.leaves] == tuple(str(value) for value in range(17, 91))
        finest = sorted({int(tree.parent[leaf]) for leaf in range(tree.leaves)})
        assert len(finest) == 16
        sizes = [int(counts[tree.first[node] : tree.last[node] + 1].sum()) for node in finest]
        assert max(sizes) < 2 * min(sizes)
        for node in range(tree.leaves, tree.root):
            low, high = values[tree.first[node]], values[tree.last[node]]
            assert tree.labels[node] == f"[{low:.0f}, {high:.0f}]"
            assert tree.leaf_counts[tree.parent[node]] > tree.leaf_counts[node]

    def test_few_and_heavy_values(self) -> None:
        assert auto_numbers([1.0, 2.5, 3.0], [1, 1, 1]).path(1) == ("2.5", "*")
        tree = auto_numbers([0.0, 10, 20, 30, 40], [1000, 1, 1, 1, 1])
        assert tree.path(0) == ("0", "*")
        assert tree.path(4) == ("40", "[30, 40]", "[10, 40]", "*")

    def test_errors(self) -> None:
        with pytest.raises(ConfigError, match="no values"):
            auto_numbers([], [])
        with pytest.raises(InternalError, match="must rise"):
            auto_numbers([2.0, 1.0], [1, 1])
        with pytest.raises(InternalError, match="one count each"):
            auto_numbers([1.0, 2.0], [1])


class TestAutoCategories:
    labels = ("pear", "apple", "plum", "car", "bus", "train", "oak", "elm", "fir", "ash")
    kinds = (0, 0, 0, 1, 1, 1, 2, 2, 2, 2)

    def profile(self) -> np.ndarray:
        noise = np.random.default_rng(5).random((len(self.labels), 3)) * 0.05
        return np.eye(3)[list(self.kinds)] + noise

    def test_finds_the_groups_in_any_order(self) -> None:
        counts = np.full(len(self.labels), 500)
        tree = auto_categories(self.labels, self.profile(), counts)
        assert tree.path(tree.code("car")) == ("car", "{bus, car, train}", "*")
        assert tree.path(tree.code("plum")) == ("plum", "{apple, pear, plum}", "*")
        assert tree.path(tree.code("oak")) == ("oak", "{ash, elm, fir, oak}", "*")
        order = np.random.default_rng(1).permutation(len(self.labels))
        shuffled = [self.labels[place] for place in order]
        assert auto_categories(shuffled, self.profile()[order], counts[order]) == tree

    def test_a_rare_label_looks_average(self) -> None:
        # Six even labels on a line, and one odd label that lies far out: with one record that is chance.
        profile = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [40.0]])
        labels = [f"v{place}" for place in range(7)]
        common = auto_categories(labels, profile, [1000] * 7)
        rare = auto_categories(labels, profile, [1000] * 6 + [1])
        assert common.path(common.code("v6")) == ("v6", "*")
        assert len(rare.path(rare.code("v6"))) > 2

    def test_long_labels_are_cut_and_stay_unique(self) -> None:
        generator = np.random.default_rng(8)
        labels = [f"category number {place}" for place in range(120)]
        tree = auto_categories(labels, generator.random((120, 4)), generator.integers(1, 9, 120))
        inner = tree.labels[tree.leaves :]
        assert len(set(tree.labels)) == tree.nodes
        assert any(", +" in label for label in inner)
        assert tree.levels <= 6
        for node in range(tree.leaves, tree.root):
            assert tree.leaf_counts[tree.parent[node]] > tree.leaf_counts[node]

    def test_labels_that_look_like_sets(self) -> None:
        labels = ["a", "b", "{a, b}", "z"]
        tree = auto_categories(labels, np.array([[0.0], [0.0], [5.0], [5.0]]), [100] * 4)
        assert tree.path(tree.code("a")) == ("a", "{a, b}'", "*")

    def test_more_labels_than_linkage_can_take(self) -> None:
        kinds = np.arange(3000) % 5
        labels = [f"v{place:04d}" for place in range(3000)]
        tree = auto_categories(labels, np.eye(5)[kinds], np.full(3000, 50))
        assert tree.leaves == 3000
        tops = {tree.path(tree.code(label))[-2] for label in labels}
        by_kind = [{tree.path(tree.code(labels[p]))[-2] for p in np.flatnonzero(kinds == k)} for k in range(5)]
        assert 2 <= len(tops) <= 5
        assert all(len(top) == 1 for top in by_kind)

    def test_few_labels_and_errors(self) -> None:
        assert auto_categories(["x"], np.zeros((1, 2)), [3]).labels == ("x", "*")
        assert auto_categories(["x", "y"], np.eye(2), [3, 3]).levels == 2
        with pytest.raises(ConfigError, match="no values"):
            auto_categories([], np.zeros((0, 2)), [])
        with pytest.raises(InternalError, match="one profile row"):
            auto_categories(["x", "y"], np.zeros((1, 2)), [3, 3])
        with pytest.raises(InternalError, match="distinct"):
            auto_categories(["x", "x"], np.zeros((2, 2)), [3, 3])
