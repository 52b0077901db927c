"""k-member: golden values, the naive twin record for record, any policy, and what algorithms share with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.reference.k_member import Table, k_member
from tests.tables import adult, random_table, rt7

from shoal.algorithms import run
from shoal.algorithms.common import assign_leftovers, finish, merge_until_ok, require_one_class
from shoal.errors import ConfigError, InfeasibleError, InternalError, UnsupportedError
from shoal.measures.loss import measure
from shoal.microdata import Microdata
from shoal.models.alpha_k import AlphaK
from shoal.models.base import Model, Rule, require_column
from shoal.models.column import own_values
from shoal.models.k_anonymity import KAnonymity
from shoal.models.kpqr import KPQR
from shoal.models.l_diversity import LDiversity
from shoal.models.p_sensitive import PSensitive
from shoal.models.t_closeness import TCloseness
from shoal.partition import Partition
from shoal.policy import Policy, Rules
from shoal.progress import Progress

MEASURES = ("il", "ncp", "granularity")
HARDER = (
    AlphaK(0.5),
    LDiversity(2, variant="entropy"),
    LDiversity(2, variant="recursive", c=1.5),
    TCloseness(0.35, distance="equal"),
    KPQR(p=2, q=0.25, r=0.3),
)


def bound(data: Microdata, *models: Model) -> Rules:
    return data.rules(Policy(models))


def classes(partition: Partition) -> list[list[int]]:
    return [members.tolist() for members in partition.members()]


def in_label_order(found: Sequence[Sequence[int]]) -> list[list[int]]:
    return [sorted(members) for members in found]


def distinct_lacking(data: Microdata, p: int) -> Callable[[Sequence[int]], float]:
    columns = [column.codes.tolist() for column in data.sensitive]
    return lambda members: sum(max(0, p - len({c[i] for i in members if c[i] >= 0})) for c in columns)


@pytest.mark.parametrize(
    ("k", "seed_from", "expected", "il"),
    [
        (2, "last", [[2, 5], [4, 6], [1, 3, 7]], 53 / 6),
        (2, "seed", [[2, 5], [3, 4, 6], [1, 7]], 131 / 15),
        (3, "last", [[1, 2, 5, 7], [3, 4, 6]], 13.4),
    ],
)
def test_g8_running_example(k: int, seed_from: str, expected: list[list[int]], il: float) -> None:
    data = rt7()
    options = {"first": 0, "seed_from": seed_from}
    made = run("k_member", data, bound(data, KAnonymity(k)), objective="il", options=options)
    assert [[record + 1 for record in members] for members in classes(made)] == expected
    assert measure(data, made).il == pytest.approx(il, abs=1e-12)


@pytest.mark.parametrize(("k", "optimum"), [(2, 39 / 5), (3, 389 / 30)])
def test_g9_never_below_the_optimum(k: int, optimum: float) -> None:
    data = rt7()
    least = min(measure(data, Partition.of_classes(split, 7)).il for split in splits(list(range(7)), k))
    assert least == pytest.approx(optimum, abs=1e-12)
    for first in range(7):
        made = run("k_member", data, bound(data, KAnonymity(k)), objective="il", options={"first": first})
        assert measure(data, made).il >= least - 1e-12


def splits(records: list[int], k: int) -> Iterator[list[list[int]]]:
    """All partitions into classes of at least k records."""
    if len(records) < 2 * k:
        yield [records]
        return
    first, rest = records[0], records[1:]
    for mask in range(2 ** len(rest)):
        inside = [first] + [r for i, r in enumerate(rest) if mask >> i & 1]
        outside = [r for i, r in enumerate(rest) if not mask >> i & 1]
        if len(inside) >= k and not outside:
            yield [inside]
        elif len(inside) >= k and len(outside) >= k:
            for more in splits(outside, k):
                yield [inside, *more]


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_naive_twin(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, k, p = int(random.integers(5, 60)), int(random.integers(2, 7)), int(random.integers(2, 5))
    columns, objective, seed_from = seed % 3, MEASURES[seed // 3 % 3], ("last", "seed")[seed % 2]
    data = random_table(seed, n, sensitive=max(1, columns))
    models = (KAnonymity(k), PSensitive(p)) if columns else (KAnonymity(k),)
    rules = bound(data, *models)
    first = int(random.integers(n))
    if any(rule.infeasible() for rule in rules.rules):
        with pytest.raises(InfeasibleError):
            run("k_member", data, rules)
        return
    made = run("k_member", data, rules, objective=objective, options={"first": first, "seed_from": seed_from})
    lacking = distinct_lacking(data, p) if columns else None
    wanted = k_member(Table(data, objective), rules.k, first, seed_from, lacking)
    assert classes(made) == in_label_order(wanted)


@pytest.mark.parametrize(("k", "objective"), [(2, "ncp"), (5, "il"), (20, "granularity")])
def test_equals_the_naive_twin_on_adult(k: int, objective: Any) -> None:
    data = adult(400)
    if data is None:
        pytest.skip("the Adult file is not here; set SHOAL_DATA")
    made = run("k_member", data, bound(data, KAnonymity(k)), objective=objective, options={"first": 3})
    assert classes(made) == in_label_order(k_member(Table(data, objective), k, 3))


def test_constant_columns_and_few_records() -> None:
    same = random_table(1, 40, duplicates=0.0, missing=0.0).take(np.zeros(23, dtype=np.int64))
    made = run("k_member", same, bound(same, KAnonymity(5)), options={"first": 11})
    assert classes(made) == in_label_order(k_member(Table(same, "ncp"), 5, 11))
    for n in (3, 4, 5):
        few = random_table(2, n)
        made = run("k_member", few, bound(few, KAnonymity(3)))
        assert made.classes == 1
        assert made.sizes.tolist() == [n]


def test_one_seed_one_result() -> None:
    data = random_table(5, 70)
    rules = bound(data, KAnonymity(4))
    labels = [run("k_member", data, rules, seed=seed).labels.tolist() for seed in (*range(6), 0)]
    assert labels[0] == labels[-1]
    assert len({tuple(one) for one in labels}) > 1


def test_tells_what_an_option_may_be() -> None:
    data = rt7()
    with pytest.raises(ConfigError, match="seed_from = 'first' is not allowed"):
        run("k_member", data, bound(data, KAnonymity(2)), options={"seed_from": "first"})
    with pytest.raises(ConfigError, match="a record between 0 and 6"):
        run("k_member", data, bound(data, KAnonymity(2)), options={"first": 7})


@pytest.mark.parametrize("model", HARDER, ids=str)
@pytest.mark.parametrize("algorithm", ["k_member", "greedy_pk", "enhanced_pk"])
def test_any_policy(algorithm: str, model: Model) -> None:
    for seed in range(4):
        data = random_table(seed, 90, sensitive=1 + seed % 2)
        rules = bound(data, KAnonymity(3), model)
        made = run(algorithm, data, rules)
        assert made.suppressed == 0
        assert all(rules.ok(members) for members in made.members())
        assert made.classes > 1


@pytest.mark.parametrize("model", [PSensitive(3), *HARDER[:4]], ids=str)
@pytest.mark.parametrize("algorithm", ["k_member", "greedy_pk"])
def test_rules_without_a_compiled_form(algorithm: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(8, 60)
    rules = bound(data, KAnonymity(4), model)
    compiled = run(algorithm, data, rules)
    monkeypatch.setattr(Rules, "entries", None)
    assert classes(run(algorithm, data, rules)) == classes(compiled)


def test_left_overs_join_the_cheapest_class() -> None:
    for seed in range(10):
        data = random_table(seed, 50)
        rules = bound(data, KAnonymity(2))
        labels = np.random.default_rng(seed).integers(-1, 8, 50)
        labels[:8] = np.arange(8)
        placed = assign_leftovers(data, rules, labels, data.space("ncp"), Progress())
        table, wanted = Table(data, "ncp"), [np.flatnonzero(labels == c).tolist() for c in range(8)]
        for record in np.flatnonzero(labels < 0):
            wanted[table.best_class(int(record), wanted)].append(int(record))
        assert [np.flatnonzero(placed == c).tolist() for c in range(8)] == in_label_order(wanted)


def test_left_overs_never_spoil_a_class() -> None:
    data = random_table(3, 80, missing=0.0)
    rules = bound(data, KAnonymity(3), AlphaK(0.5))
    good = run("k_member", data, rules)
    labels = good.labels.astype(np.int64)
    labels[np.isin(labels, [0, 1, 2])] = -1
    labels = np.where(labels > 0, labels - 3, labels)
    placed = assign_leftovers(data, rules, labels, data.space("ncp"), Progress())
    assert (rules.deficits(placed, int(placed.max()) + 1) <= 0).all()
    assert (placed[labels >= 0] == labels[labels >= 0]).all()


def test_merging_takes_the_cheapest_partner_that_helps() -> None:
    data = rt7()
    rules = bound(data, KAnonymity(2))
    table = Table(data, "il")
    apart = [[0, 1], [2, 3], [4, 6], [5]]
    labels = Partition.of_classes(apart, 7).labels
    merged = merge_until_ok(data, rules, labels, data.space("il"), Progress())
    added = [table.total([[*other, 5]]) - table.total([other]) for other in apart[:3]]
    assert merged[5] == int(np.argmin(added))
    assert (merged[labels < 3] == labels[labels < 3]).all()


@pytest.mark.parametrize("model", HARDER, ids=str)
def test_merging_reaches_every_policy_from_anywhere(model: Model) -> None:
    data = random_table(4, 120, sensitive=2)
    rules = bound(data, KAnonymity(4), model)
    labels = np.random.default_rng(0).integers(-1, 60, 120)
    made = finish(data, rules, Partition.compact(labels).labels, "ncp", Progress())
    assert all(rules.ok(members) for members in made.members())


class AtMost(Model):
    """No class has more than `most` records: closed under nothing."""

    name = "at_most"
    main = "most"
    superset_closed = False
    union_closed = False

    def __init__(self, most: int) -> None:
        object.__setattr__(self, "most", most)

    @classmethod
    def examples(cls) -> tuple[Model, ...]:
        return (cls(3),)

    def parameters(self) -> dict[str, Any]:
        return {"most": self.most}  # type: ignore[attr-defined]

    def bind(self, column: Any, n: int) -> Rule:
        column = require_column(self, column)
        return AtMostRule(self, column, own_values(column), n)


class AtMostRule(Rule):
    """Too many records are a deficit."""

    def deficit(self, sizes: Any, counts: Any) -> Any:
        return np.maximum(0, sizes - self.model.most).astype(np.float64)  # type: ignore[attr-defined]

    def strongest(self, sizes: Any, counts: Any) -> float:
        return float(sizes.max())


def test_refuses_before_working_what_merging_cannot_reach() -> None:
    data = random_table(0, 30)
    with pytest.raises(UnsupportedError, match="one class with all 30 records does not satisfy"):
        require_one_class(bound(data, KAnonymity(2), AtMost(5)), "k_member")
    with pytest.raises(UnsupportedError, match="enhanced_pk"):
        run("enhanced_pk", data, bound(data, KAnonymity(2), AtMost(5)))
    with pytest.raises(InfeasibleError, match="not even one class with all 30 records"):
        require_one_class(bound(data, LDiversity(7, variant="entropy")), "k_member")


def test_a_broken_promise_is_our_bug() -> None:
    from shoal.algorithms.common import checked

    data = rt7()
    with pytest.raises(InternalError):
        checked(bound(data, KAnonymity(3)), np.array([0, 0, 0, 1, 1, 0, 0]))
