"""Cuts from counts are Mondrian's own: the corners against a naive twin, the classes against the algorithm in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from tests.reference.corners import corners as naive
from tests.tables import random_table

import shoal
from shoal.algorithms.mondrian import cut_blocks, mondrian
from shoal.engines.corners import HEAVIEST, Corners, Part, Shape
from shoal.engines.cutting import Cutting, CutTree
from shoal.engines.guessing import Guess, Sample, heaps
from shoal.errors import ConfigError, InfeasibleError, UnsupportedError
from shoal.kernels.corners import route
from shoal.microdata import Microdata
from shoal.models import MODELS
from shoal.models.base import Model
from shoal.policy import Policy, Rules
from shoal.progress import Progress

K = Policy((shoal.KAnonymity(3),))
P = shoal.KAnonymity(3) & shoal.PSensitive(2)
T = shoal.KAnonymity(2) & shoal.TCloseness(0.4)


def cut(data: Microdata, rules: Rules, size: int = 1, **settings: Any) -> tuple[NDArray[np.int32], CutTree]:
    """The leaf of each record, counted in two heaps that are merged."""
    codes, seen = np.ascontiguousarray(data.codes.T), np.ascontiguousarray(rules.codes().T)

    def weigh(tree: Any, shape: Shape) -> Corners:
        heaps = []
        for some in (slice(0, data.n // 3), slice(data.n // 3, None)):
            heap = Corners(shape)
            heap.add(tree, np.ascontiguousarray(codes[:, some]), np.ascontiguousarray(seen[:, some]))
            heaps.append(heap)
        return heaps[1].merge(heaps[0])

    whole = Part(data.n, data.codes.min(axis=0).astype(np.int64), data.codes.max(axis=0).astype(np.int64))
    objective = settings.pop("objective", "ncp")
    tree = Cutting(data.space(objective), rules, size, **settings).run(weigh, whole, Progress.of(None))
    part = np.empty(data.n, dtype=np.int32)
    route(tree.flat(tree.numbers), codes, part)
    return part, tree


def same_classes(one: NDArray[Any], other: NDArray[Any]) -> bool:
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(np.unique(one)) == len(np.unique(other))


def wide_sets(n: int = 400) -> Microdata:
    """A set of more than 64 members, one of two, a number with missing values and one with as many values as records."""
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "town": [f"t{i:03}" for i in np.minimum(random.geometric(0.02, n), 150)],
            "sex": [("f", "m")[i] for i in random.integers(0, 2, n)],
            "age": [None if i < 4 else int(i) for i in random.integers(0, 60, n)],
            "pay": random.permutation(n).tolist(),
            "ill": [f"i{i}" for i in random.integers(0, 5, n)],
        }
    )
    roles = {"town": "quasi", "sex": "quasi", "age": "quasi", "pay": "quasi", "ill": "sensitive"}
    return Microdata.from_frame(frame, {name: {"role": role} for name, role in roles.items()})


def test_corners_are_those_of_the_naive_twin() -> None:
    data = wide_sets(200)
    rules = data.rules(P)
    tree = CutTree()
    children = tree.split(0, 2, [(5, 30)])
    part = np.where((data.codes[:, 2] >= 5) & (data.codes[:, 2] <= 30), 0, 1)
    shown = {}
    for node, number in zip(children, (0, 1), strict=True):
        inside = data.codes[part == number]
        shown[node] = Part(len(inside), inside.min(axis=0).astype(np.int64), inside.max(axis=0).astype(np.int64))
    shape = Shape(tuple(shown.values()), (data.domains[0].size, data.domains[1].size, 0, 0), rules.view_starts)
    found = Corners(shape)
    found.add(
        tree.flat({node: i for i, node in enumerate(shown)}), np.ascontiguousarray(data.codes.T), rules.codes().T.copy()
    )
    wanted = naive(data.codes.tolist(), rules.codes().tolist(), part.tolist())
    seen = 0
    for p in range(2):
        for a in range(4):
            groups = found.of(p, a)
            for g, code in enumerate(groups.codes.tolist()):
                cell = wanted[p, a, code]
                seen += 1
                assert groups.counts[g] == cell["count"]
                for b in (0, 1):
                    assert set(np.flatnonzero(groups.members(b)[g]).tolist()) == cell["members"][b]
                for b in (2, 3):
                    assert groups.ends[g, b].tolist() == [min(cell["members"][b]), max(cell["members"][b])]
                counted = {v: n for v, n in enumerate(groups.histograms[g].tolist()) if n}
                assert counted == dict(cell["histograms"][0])
    assert seen == len(wanted)


@pytest.mark.parametrize("policy", [K, P, T], ids=["k", "p", "t"])
@pytest.mark.parametrize("seed", range(4))
def test_every_class_is_mondrians_own(seed: int, policy: Policy) -> None:
    data = random_table(seed, 250)
    rules = data.rules(policy)
    part, tree = cut(data, rules)
    assert same_classes(part, mondrian(data, rules).labels)
    assert tree.jobs == tree.levels, "no refused cut costs another walk"


@pytest.mark.parametrize("policy", [K, P, T], ids=["k", "p", "t"])
def test_sets_of_many_members_and_numbers_of_many_values(policy: Policy) -> None:
    data = wide_sets()
    rules = data.rules(policy)
    assert data.domains[0].size > 64
    assert same_classes(cut(data, rules)[0], mondrian(data, rules).labels)


@pytest.mark.parametrize("categories", ["auto", "hierarchy", "sets", "codes"])
@pytest.mark.parametrize(("split", "cuts"), [(0, "median"), (1, "median"), (2, "all")])
def test_every_way_to_cut(categories: Any, split: int, cuts: Any) -> None:
    data = random_table(7, 200)
    for policy in (K, P):
        rules = data.rules(policy)
        wanted = mondrian(
            data, rules, categories=categories, split="median" if split == 0 else "loss", cuts=cuts
        ).labels
        assert same_classes(cut(data, rules, split=split, categories=categories)[0], wanted)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model(name: str) -> None:
    data = random_table(3, 150, sensitive=2)
    for model in MODELS[name].examples():
        bound = [rules for column in ("illness", "income") if (rules := rules_on(data, model, column)) is not None]
        assert bound, f"{model} fits neither column"
        for rules in bound:
            try:
                rules.require_feasible()
                wanted = mondrian(data, rules).labels
            except (InfeasibleError, UnsupportedError):
                continue
            assert same_classes(cut(data, rules)[0], wanted), model


def rules_on(data: Microdata, model: Model, column: str) -> Rules | None:
    """The model on one column; None where it wants numbers, an order or a taxonomy and the column has none."""
    try:
        return data.rules(
            Policy((shoal.KAnonymity(2), replace(model, attribute=column) if model.per_attribute else model))
        )
    except ConfigError:
        return None


@pytest.mark.parametrize("objective", ["ncp", "il", "granularity"])
def test_blocks_are_those_that_cut_blocks_makes(objective: Any) -> None:
    data = random_table(2, 600)
    rules = data.rules(P)
    wanted = cut_blocks(data, rules, data.space(objective), 100, Progress.of(None))
    part, tree = cut(data, rules, 100, even=True, objective=objective)
    assert same_classes(part, wanted)
    assert all(leaf.groups is None for leaf in tree.parts)


def test_parts_that_do_not_fit_take_more_walks_and_give_the_same_classes() -> None:
    data = random_table(1, 250)
    rules = data.rules(P)
    part, tree = cut(data, rules, room=1 << 16)
    assert tree.jobs > tree.levels
    assert same_classes(part, mondrian(data, rules).labels)


def test_counts_that_can_never_fit_are_refused_with_the_way_out() -> None:
    data = wide_sets()
    with pytest.raises(UnsupportedError, match=r"very many values; round or group"):
        cut(data, data.rules(P), room=100)


def test_a_heap_of_guesses_has_at_least_one() -> None:
    part = Part(5, np.zeros(2, dtype=np.int64), np.full(2, 9, dtype=np.int64))
    guesses = [Guess(part), Guess(part, 0, [(0, 4)], [Guess(part), Guess(part)]), Guess(part)]
    assert [len(heap) for heap in heaps(guesses, 1)] == [1, 1, 1]
    assert [len(heap) for heap in heaps(guesses, 60)] == [2, 1]
    assert [len(heap) for heap in heaps(guesses, 80)] == [3]


@pytest.mark.parametrize("policy", [K, P, T], ids=["k", "p", "t"])
@pytest.mark.parametrize("size", [1, 60])
def test_a_good_guess_saves_walks_and_a_bad_one_costs_none(policy: Policy, size: int) -> None:
    data = random_table(6, 250, sensitive=2)
    rules = data.rules(policy)
    wanted, plain = cut(data, rules, size)
    codes, seen = data.codes.T.copy(), rules.codes().T.copy()
    alike = np.argsort(codes[0], kind="stable")[:20]
    samples = {
        "everybody": Sample(codes, seen, 1),
        "a few": Sample(codes[:, ::9].copy(), seen[:, ::9].copy(), 9),
        "nobody": Sample(codes[:, :0].copy(), seen[:, :0].copy(), 1),
        "people who are much alike": Sample(codes[:, alike].copy(), seen[:, alike].copy(), 12),
    }
    for name, sample in samples.items():
        part, tree = cut(data, rules, size, sample=sample)
        assert part.tolist() == wanted.tolist(), "the same leaves under the same numbers"
        assert tree.jobs == 1 if name == "everybody" else 1 <= tree.jobs <= plain.jobs, name
        assert tree.levels == plain.levels
    # Counts of many pieces are added up from as many walks as they need room for.
    part, tree = cut(data, rules, size, sample=samples["everybody"], room=1 << 16)
    assert part.tolist() == wanted.tolist()


def test_weights_beyond_31_bits_are_told_by_several_rows() -> None:
    part = Part(3, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64))
    found = Corners(Shape((part,), (0,), np.zeros(1, dtype=np.int64)))
    found.add(CutTree().flat({0: 0}), np.array([[0, 1, 1]], dtype=np.int32), np.zeros((0, 3), dtype=np.int32))
    found.counts[0] = 3 * HEAVIEST + 5
    table = found.of(0, 0).corners(np.uint16)
    weights = table.cargo[1].astype(np.int64)
    assert weights[table.columns[0] == 0].sum() == 3 * HEAVIEST + 5
    assert weights.max() == HEAVIEST and weights[0] > 0


def test_equal_records_are_one_class_however_many() -> None:
    frame = pl.DataFrame({"a": [1] * 500 + list(range(2, 12)), "b": ["x"] * 510})
    data = Microdata.from_frame(frame, {"a": {"role": "quasi"}, "b": {"role": "quasi"}})
    rules = data.rules(K)
    part, tree = cut(data, rules, size=50)
    assert same_classes(np.where(part == part[0], -1, part)[:1], np.array([-1]))
    large = [leaf for leaf in tree.parts if leaf.groups is not None]
    assert [leaf.part.weight for leaf in large] == [500]
