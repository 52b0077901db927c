"""peel: what leaves a cell, which cells there are, and valid partitions under every model."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest
from tests.reference import peel as naive
from tests.reference.k_member import Table
from tests.tables import adult, random_table

import shoal
from shoal.algorithms import peel as module
from shoal.algorithms import run
from shoal.algorithms.levels import full_domain
from shoal.errors import ConfigError, ShoalError, UnsupportedError
from shoal.kernels.peel import FILL, REMOVE, WHOLE, choose, find_points
from shoal.kernels.space import flatten
from shoal.microdata import Microdata
from shoal.models import MODELS
from shoal.models.forms import Shares
from shoal.policy import Policy, Rules
from shoal.progress import Progress

EXAMPLES = [example for model in MODELS.values() for example in model.examples()]
pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")


def one_column(values: list[str]) -> Microdata:
    """A table whose only interesting column is the sensitive one."""
    frame = pl.DataFrame({"place": ["here"] * len(values), "secret": values})
    return Microdata.from_frame(frame, {"place": {"role": "quasi"}, "secret": {"role": "sensitive"}})


def wanted_for(values: list[str], model: shoal.TCloseness, slack: float = 1.0, smallest: int = 1):
    data = one_column(values)
    rules = data.rules(Policy((model,)))
    return data, module._wanted(rules, slack, smallest)


TABLES = ["aaaaabbbbcccdde", "aaabbbccc", "aabbccddeeff", "aaaaaaaabbcd", "aaaaabbbbb"]
TESTS = {
    "t": (lambda t: shoal.TCloseness(t, distance="equal"), (0.15, 0.25, 0.4)),
    "alpha": (lambda a: MODELS["alpha_k"](a), (0.5, 0.6, 0.7)),
    "entropy": (lambda length: MODELS["l_diversity"](length, variant="entropy"), (1.5, 2.0)),
    "recursive": (lambda c: MODELS["l_diversity"](2, variant="recursive", c=c), (1.3, 2.5)),
}


def satisfied(kind: str, limit: float, table: list[int]):
    """The rule on numbers of records per value, from its definition."""
    if kind == "t":
        return lambda chosen: naive.equal_distance(chosen, table) <= limit + 1e-12
    if kind == "alpha":
        return lambda chosen: max(chosen) <= limit * sum(chosen) + 1e-12
    if kind == "entropy":
        return lambda chosen: naive.entropy(chosen) >= np.log(limit) - 1e-12
    return lambda chosen: naive.recursive_gap(chosen, 2, limit) > 1e-12 * sum(chosen)


@pytest.mark.parametrize("kind", TESTS)
def test_as_many_records_leave_a_cell_as_any_subset_has(kind: str) -> None:
    make, limits = TESTS[kind]
    random, left = np.random.default_rng(7), 0
    for table in TABLES:
        for limit in limits:
            data, wanted = wanted_for(list(table), make(limit))
            labels = data.sensitive[0].labels
            totals = [table.count(label) for label in labels]
            assert wanted.mode == FILL
            for _ in range(6):
                have = random.integers(0, np.array(totals) + 1)
                if have.sum() == 0:
                    continue
                take = np.zeros_like(have)
                good = satisfied(kind, limit, totals)
                size = choose(wanted, have, int(have.sum()), take)
                expected = naive.largest_subset(have.tolist(), good, wanted.smallest)
                assert size == expected
                if size:
                    assert take.sum() == size and (take <= have).all() and good(take.tolist())
                    left += size < have.sum()
    assert left > 5


def test_values_that_are_not_protected_all_come_along() -> None:
    _, wanted = wanted_for(list("aaabbbcccc"), MODELS["alpha_k"](0.4, values=["c"]))
    take = np.zeros(3, dtype=np.int64)
    data_order = one_column(list("aaabbbcccc")).sensitive[0].labels
    have = np.array([{"a": 3, "b": 1, "c": 4}[label] for label in data_order])
    assert choose(wanted, have, 8, take) == 6
    assert dict(zip(data_order, take.tolist(), strict=True)) == {"a": 3, "b": 1, "c": 2}


def test_removal_step_by_step_is_good_and_near_the_largest() -> None:
    random, shortfall, some = np.random.default_rng(3), 0, 0
    frame = pl.DataFrame(
        {
            "place": ["here"] * 24,
            "x": random.choice(list("ab"), 24).tolist(),
            "y": random.choice(list("pqr"), 24).tolist(),
        }
    )
    schema = {"place": {"role": "quasi"}, "x": {"role": "sensitive"}, "y": {"role": "sensitive"}}
    data = Microdata.from_frame(frame, schema)
    rules = data.rules(shoal.KAnonymity(2) & shoal.TCloseness(0.2, distance="equal"))
    wanted = module._wanted(rules, 1.0, 2)
    assert wanted.mode == REMOVE and wanted.cells.shape == (6, 2)
    members = [np.flatnonzero((rules.codes() == (cells - [0, 2])).all(axis=1)) for cells in wanted.cells]

    def good(chosen: tuple[int, ...]) -> bool:
        return rules.ok(np.concatenate([of[:many] for of, many in zip(members, chosen, strict=True)]).astype(np.int64))

    for _ in range(12):
        have = np.array([random.integers(0, min(2, len(of)) + 1) for of in members])
        take = np.zeros_like(have)
        size = choose(wanted, have, int(have.sum()), take)
        expected = naive.largest_subset(have.tolist(), good, 2)
        assert size <= expected
        if size:
            assert good(tuple(take.tolist())) and (take <= have).all()
            some += 1
        shortfall += expected - size
    assert some >= 3 and shortfall <= 12


def test_limits_move_towards_the_table() -> None:
    table = list("aaaabbbccd")
    for model, limit, before, after in [
        (shoal.TCloseness(0.3, distance="equal"), "t", 0.3, 0.15),
        (MODELS["alpha_k"](0.6), "upper", [0.6] * 4, [0.5] * 4),
        (MODELS["l_diversity"](2, variant="recursive", c=2.0), "c", 2.0, (2.0 + 4 / 6) / 2),
        (
            MODELS["l_diversity"](2.0, variant="entropy"),
            "least",
            np.log(2),
            (np.log(2) + naive.entropy([4, 3, 2, 1])) / 2,
        ),
    ]:
        data = one_column(table)
        rules = data.rules(Policy((model,)))
        (entry,) = rules.entries
        assert getattr(entry.form, limit) == pytest.approx(before)
        assert getattr(module._nearer(rules, entry, 0.5).form, limit) == pytest.approx(after)
        assert getattr(module._nearer(rules, entry, 1.0).form, limit) == pytest.approx(before)


def test_bounds_of_each_value_move_towards_its_own_share() -> None:
    table, n = np.array([6, 3, 1]), 10
    form = Shares(np.array([0.3, 0.1, 0.0]), np.array([0.8, 0.5, np.inf]))
    halfway = form.nearer(table, n, 0.5)
    assert halfway.lower == pytest.approx([0.45, 0.2, 0.0])
    assert halfway.upper == pytest.approx([0.7, 0.4, np.inf])
    assert form.like_table and not Shares.at_most(np.array([0.5, 0.5, np.inf])).like_table


def suited(model: shoal.Model) -> Policy:
    """3-anonymity and the model, on the sensitive attribute that it can be asked of."""
    attribute = "income" if model.name == "k_e" or getattr(model, "distance", None) == "ordered" else "illness"
    on = {} if model.name == "k_anonymity" else {"attribute": attribute}
    return shoal.KAnonymity(3) & MODELS[model.name](**{**model.parameters(), **on})


@pytest.mark.parametrize("seed", range(4))
def test_cells_are_those_of_the_lattice_by_rising_loss(seed: int) -> None:
    data = random_table(seed, 40)
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    wanted, space = module._wanted(rules, 1.0, None), data.space("ncp")
    assert wanted.mode == WHOLE and wanted.smallest == 3
    points = data.points
    live = module._bits(np.zeros(len(points.codes), dtype=np.int32), 1)[0]
    inside, visits = module._cells(data, flatten(space), wanted, live, Progress())
    found, losses, members = set(), [], np.empty(len(points.codes), dtype=np.int64)
    for visit in visits:
        here = members[: find_points(visit, inside, live, members)]
        records = np.flatnonzero(np.isin(points.of_record, here))
        found.add(frozenset(records.tolist()))
        losses.append(space.unit(space.states(data.codes, records, np.array([0])))[0])
    levels = [[level.tolist() for level in per] for per in full_domain(data).groups]
    assert found == naive.cells(data.codes.tolist(), levels, 3)
    assert (np.diff(losses) > -1e-9).all()


def same_as_the_twin(data: Microdata, rules: Rules) -> None:
    found = run("peel", data, rules)
    levels = [[level.tolist() for level in per] for per in full_domain(data).groups]
    losses = Table(data, "ncp")
    ok = lambda members: rules.ok(np.array(members))  # noqa: E731
    expected = naive.peel(data.codes.tolist(), levels, rules.k, losses.unit, ok)
    assert len(expected) > 1
    assert {frozenset(np.flatnonzero(found.labels == c).tolist()) for c in range(found.classes)} == {
        frozenset(members) for members in expected
    }


@pytest.mark.parametrize("seed", range(4))
def test_equals_the_naive_twin(seed: int) -> None:
    data = random_table(seed, 60)
    same_as_the_twin(data, data.rules(shoal.KAnonymity(3) & shoal.PSensitive(2, "illness")))


def test_equals_the_naive_twin_on_adult() -> None:
    data = adult(300, sensitive=("occupation",), quasi=("age", "sex", "race", "education"))
    if data is None:
        pytest.skip("Adult is not here")
    same_as_the_twin(data, data.rules(shoal.KAnonymity(4) & shoal.PSensitive(3)))


@cache
def table(seed: int) -> Microdata:
    return random_table(seed, 150, sensitive=1 + seed % 2)


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_every_model_is_kept_or_refused_with_a_reason(model: shoal.Model, seed: int) -> None:
    data = table(seed)
    policy = suited(model)
    rules = data.rules(policy)
    if not rules.ok(np.arange(data.n)):
        with pytest.raises(ShoalError, match=model.name):
            run("peel", data, rules, seed=seed)
        return
    partition = run("peel", data, rules, seed=seed)
    assert partition.n == data.n and partition.suppressed == 0
    assert not rules.deficits(partition.labels, partition.classes).any()
    again = run("peel", data, data.rules(policy), seed=seed)
    assert (again.labels == partition.labels).all()


def test_two_sensitive_attributes() -> None:
    data = table(1)
    policy = shoal.KAnonymity(4) & shoal.TCloseness(0.4, distance="equal") & MODELS["alpha_k"](0.6)
    partition = run("peel", data, data.rules(policy))
    assert partition.classes > 1
    assert not data.rules(policy).deficits(partition.labels, partition.classes).any()


def test_a_thin_lattice_still_gives_good_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(0)
    rules = data.rules(shoal.KAnonymity(3) & shoal.TCloseness(0.5, distance="equal"))
    monkeypatch.setattr(module, "VISITS", 20 * len(data.points.codes))
    thin = run("peel", data, rules)
    assert thin.classes > 1 and not rules.deficits(thin.labels, thin.classes).any()
    monkeypatch.setattr(module, "BITS", 1)
    coarsest = run("peel", data, rules)
    assert coarsest.classes == 1
    levels = [
        [np.arange(8), np.arange(8) // 2, np.arange(8) // 3, np.arange(8) // 8],
        [np.arange(4), np.arange(4) // 4],
    ]
    monkeypatch.setattr(module, "BITS", 2**30)
    kept = module._thinned(levels, points=10, visits=60)
    assert [[int(level.max()) + 1 for level in per] for per in kept] == [[8, 3, 1], [4, 1]]


def test_left_overs_go_to_the_cheapest_class_that_stays_good() -> None:
    data = table(0)
    rules = data.rules(shoal.KAnonymity(3) & shoal.TCloseness(0.45, distance="equal"))
    space, random = data.space("granularity"), np.random.default_rng(0)
    labels = np.where(np.arange(data.n) < 130, random.integers(0, 4, data.n), -1).astype(np.int64)
    before = [np.flatnonzero(labels == c).tolist() for c in range(4)]
    module._place(data, rules, rules.flat(), space, labels, Progress())

    def unit(members: list[int]) -> float:
        return float(space.unit(space.states(data.codes, np.array(members), np.array([0])))[0])

    expected = naive.place(range(130, data.n), before, unit, lambda members: rules.ok(np.array(members)))
    assert [np.flatnonzero(labels == c).tolist() for c in range(4)] == [sorted(members) for members in expected]


def test_slack_and_smallest_are_respected() -> None:
    data = adult(1500, sensitive=("occupation",), quasi=("age", "sex", "race", "education"))
    if data is None:
        pytest.skip("Adult is not here")
    rules = data.rules(shoal.KAnonymity(5) & shoal.TCloseness(0.3, distance="equal"))
    partition = run("peel", data, rules, options={"smallest": 40})
    assert partition.notes["peeled"] > 3 and partition.sizes.min() >= 40
    assert not rules.deficits(partition.labels, partition.classes).any()
    finer = run("peel", data, rules)
    assert finer.notes["peeled"] > partition.notes["peeled"]


@pytest.mark.parametrize(
    "options", [{"slack": 0}, {"slack": 1.2}, {"slack": "much"}, {"smallest": 0}, {"smallest": 2.5}]
)
def test_options_out_of_range_are_refused(options: dict[str, object]) -> None:
    data = table(0)
    with pytest.raises(ConfigError, match=r"peel: (slack|smallest) = .* is not allowed"):
        run("peel", data, data.rules(Policy((shoal.KAnonymity(3),))), options=options)


def test_a_rule_without_compiled_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(0)
    rules = data.rules(Policy((shoal.KAnonymity(3),)))
    monkeypatch.setattr(type(rules.rules[0]), "forms", lambda self: None)
    with pytest.raises(UnsupportedError, match="mondrian"):
        run("peel", data, rules)
