"""Priced relocation: single sweeps against a naive twin, and what every search promises."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.reference import peel as naive
from tests.tables import adult, random_table

import shoal
from shoal.algorithms import run
from shoal.errors import ConfigError, ShoalError
from shoal.kernels.relocation import gained_slack, move_records, slack, swap_records
from shoal.microdata import Microdata
from shoal.models import MODELS
from shoal.partition import Partition
from shoal.policy import Policy, Rules
from shoal.refine import relocation as module
from shoal.refine.relocation import relocate
from shoal.space import Space

EXAMPLES = [example for model in MODELS.values() for example in model.examples()]
POLICIES = [
    shoal.KAnonymity(3) & shoal.TCloseness(0.45, "illness", distance="equal"),
    shoal.KAnonymity(2) & shoal.TCloseness(0.35, "illness", distance="hierarchical"),
    shoal.KAnonymity(3) & MODELS["alpha_k"](0.6, "illness"),
    shoal.KAnonymity(3) & MODELS["l_diversity"](2.5, "illness", variant="entropy"),
    shoal.KAnonymity(3) & MODELS["l_diversity"](2, "illness", variant="recursive", c=1.5),
    shoal.KAnonymity(3) & MODELS["p_sensitive"](2, "illness"),
]
policies = pytest.mark.parametrize("policy", POLICIES, ids=str)
pytestmark = pytest.mark.filterwarnings("ignore:.*do not vary")


@cache
def table(seed: int, n: int = 60) -> Microdata:
    """Numbers, both taxonomies, sets, a constant column, holes and equal records."""
    return random_table(seed, n, sensitive=2)


def dealt(rules: Rules, classes: int) -> Partition:
    """Records dealt value by value: far from cheap, and good unless the policy asks for much."""
    dealt = np.empty(rules.n, dtype=np.int32)
    dealt[np.lexsort([np.arange(rules.n), *rules.codes().T])] = np.arange(rules.n) % classes
    for few in range(classes, 0, -1):
        labels = (dealt % few).astype(np.int32)
        if not rules.deficits(labels, few).any():
            return Partition(labels)
    raise AssertionError("not even one class is good")


def search(data: Microdata, rules: Rules, space: Space, start: Partition) -> module._Search:
    flat = rules.flat()
    assert flat is not None
    return module._Search(data.codes, space, rules, flat, np.arange(data.n), start.labels, 0)


def unit_of(data: Microdata, space: Space):
    def unit(members: list[int]) -> float:
        return float(space.unit(space.states(data.codes, np.array(members), np.array([0])))[0])

    return unit


def total_loss(data: Microdata, space: Space, partition: Partition) -> float:
    return float(space.unit(space.states(data.codes, partition.order, partition.starts)) @ partition.sizes)


@policies
@pytest.mark.parametrize("seed", range(2))
def test_a_sweep_equals_the_naive_twin(policy: Policy, seed: int) -> None:
    data = table(seed)
    rules, space = data.rules(policy), data.space("granularity" if seed else "ncp")
    start = dealt(rules, 6)
    state = search(data, rules, space, start)
    flat, unit = rules.flat(), unit_of(data, space)
    random = np.random.default_rng(seed)

    def slack_of(members: list[int]) -> float:
        stats = rules.stats_of(np.array(members))
        return slack(flat, len(members), np.concatenate(stats.counts, axis=1)[0].astype(np.int32))

    expected, moved = start.members(), False
    _, records, classes = state.part(np.arange(start.classes))
    for price in (1.5, 0.4, 0.0):
        order, before = random.permutation(data.n), classes.label.copy()
        expected = naive.move(
            expected, order.tolist(), price, state.top, unit, lambda members: rules.ok(np.array(members)), slack_of
        )
        sweep = state.before(order, price)
        move_records(state.flat, flat, records, classes, sweep, 2**60)
        assert sweep.at[0] == data.n and sweep.at[1] > 0
        for c, members in enumerate(expected):
            assert np.flatnonzero(classes.label == c).tolist() == sorted(members)
        moved = moved or bool((before != classes.label).any())
    assert moved or start.classes == 1
    check_books(data, rules, space, state, classes)


def check_books(data: Microdata, rules: Rules, space: Space, state: module._Search, classes) -> None:
    """All that the loops write down about classes is what the labels say."""
    order, starts = module._by_class(classes.label)
    states = space.states(data.codes, order, starts)
    stats = rules.stats(classes.label, len(states))
    assert (classes.state == states).all()
    assert (classes.edge == state.edges(data.codes, classes.label, states)).all()
    assert np.allclose(classes.part, space.losses(states) * space.weights, atol=1e-12)
    assert np.allclose(classes.loss, space.unit(states), atol=1e-12)
    assert (classes.size == stats.sizes).all()
    assert (classes.counts == np.concatenate(stats.counts, axis=1)).all()
    for c, head in enumerate(classes.head):
        ring, m = [int(head)], int(classes.after[head])
        while m != head:
            assert classes.before[m] == ring[-1]
            ring.append(m)
            m = int(classes.after[m])
        assert sorted(ring) == np.flatnonzero(classes.label == c).tolist()


@policies
def test_swaps_leave_histograms_alone_until_none_gains(policy: Policy) -> None:
    data = table(3, 40)
    rules, space = data.rules(policy), data.space("ncp")
    start = dealt(rules, 5)
    state = search(data, rules, space, start)
    _, records, classes = state.part(np.arange(start.classes))
    counts, before = classes.counts.copy(), float(classes.loss @ classes.size)
    for _ in range(20):
        labels = classes.label.copy()
        swap_records(state.flat, records, classes, state.before(np.arange(data.n), 0.0), 2**60)
        after = float(classes.loss @ classes.size)
        assert after <= before + 1e-9
        before = after
        if (labels == classes.label).all():
            break
    else:
        raise AssertionError("swaps do not come to an end")
    assert (classes.counts == counts).all() and (classes.size == start.sizes).all()
    members = [np.flatnonzero(classes.label == c).tolist() for c in range(start.classes)]
    assert naive.cheapest_swap(members, unit_of(data, space), state.group.tolist()) >= -1.1e-9
    check_books(data, rules, space, state, classes)


def test_slack_is_what_it_says() -> None:
    data = table(0)
    random = np.random.default_rng(5)
    values = [value if value is not None else None for value in data.frame["illness"].to_list()]
    labels = data.sensitive[0].labels
    whole = [values.count(label) for label in labels]
    for _ in range(20):
        members = random.choice(data.n, int(random.integers(2, 30)), replace=False)
        own = [sum(values[m] == label for m in members) for label in labels]
        if sum(own) == 0:
            continue
        excess = sum(max(0.0, c - sum(own) * q / sum(whole)) for c, q in zip(own, whole, strict=True))
        for model, expected in [
            (shoal.TCloseness(0.3, "illness", distance="equal"), 0.3 * sum(own) - excess),
            (MODELS["alpha_k"](0.5, "illness"), 0.5 * len(members) - max(own)),
            (MODELS["l_diversity"](2.0, "illness", variant="entropy"), sum(own) * (naive.entropy(own) - np.log(2))),
            (MODELS["l_diversity"](2, "illness", variant="recursive", c=1.5), naive.recursive_gap(own, 2, 1.5)),
            (MODELS["l_diversity"](3, "illness", variant="recursive", c=0.5), naive.recursive_gap(own, 3, 0.5)),
            (MODELS["p_sensitive"](2, "illness"), 0.0),
        ]:
            rules = data.rules(Policy((model,)))
            counts = rules.stats_of(members).counts[0][0].astype(np.int32)
            assert slack(rules.flat(), len(members), counts) == pytest.approx(expected, abs=1e-9)


def test_gained_slack_refuses_what_would_break_the_rule() -> None:
    data = table(0)
    rules = data.rules(Policy((MODELS["alpha_k"](0.5, "illness"),)))
    counts = np.zeros(rules.views[0].width, dtype=np.int32)
    counts[:3] = (3, 2, 1)
    assert gained_slack(rules.flat(), counts, 6, np.array([0]), 1) == -np.inf
    assert gained_slack(rules.flat(), counts, 6, np.array([1]), 1) == pytest.approx(0.5)
    assert gained_slack(rules.flat(), counts, 6, np.array([2]), -1) == -np.inf
    assert gained_slack(rules.flat(), counts, 6, np.array([0]), -1) == pytest.approx(0.5)
    assert counts.tolist()[:3] == [3, 2, 1]


@pytest.mark.parametrize("model", EXAMPLES, ids=str)
def test_every_policy_is_kept_and_no_loss_added(model: shoal.Model) -> None:
    data = table(1, 120)
    attribute = "income" if model.name == "k_e" or getattr(model, "distance", None) == "ordered" else "illness"
    on = {} if model.name == "k_anonymity" else {"attribute": attribute}
    rules = data.rules(shoal.KAnonymity(3) & MODELS[model.name](**{**model.parameters(), **on}))
    if not rules.ok(np.arange(data.n)):
        with pytest.raises(ShoalError, match=model.name):
            run("peel", data, rules)
        return
    start, space = dealt(rules, 8), data.space("ncp")
    before = start.labels.copy()
    found = relocate(data.codes, space, rules, start, effort=0.02, seed=3)
    assert (start.labels == before).all()
    assert found.classes == start.classes and found.suppressed == 0
    assert not rules.deficits(found.labels, found.classes).any()
    assert total_loss(data, space, found) <= total_loss(data, space, start) + 1e-9
    again = relocate(data.codes, space, rules, start, effort=0.02, seed=3)
    assert (again.labels == found.labels).all()


def test_it_gains_and_more_effort_never_loses() -> None:
    data = adult(1500, sensitive=("occupation",), quasi=("age", "sex", "race", "education"))
    if data is None:
        pytest.skip("Adult is not here")
    rules = data.rules(shoal.KAnonymity(5) & shoal.TCloseness(0.3, distance="equal"))
    space, start = data.space("granularity"), run("peel", data, rules, objective="granularity")
    shares: list[float] = []
    short = relocate(data.codes, space, rules, start, effort=0.005)
    long = relocate(data.codes, space, rules, start, effort=0.4, progress=shares.append)
    losses = [total_loss(data, space, partition) for partition in (start, short, long)]
    assert losses[2] < 0.9 * losses[0]
    assert losses[1] <= losses[0] + 1e-9 and losses[2] <= losses[1] + 1e-9
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert not rules.deficits(long.labels, long.classes).any()
    # Without the price of slack the same moves end up worse: this is what the search is for.
    plain = search(data, rules, space, start)
    while plain.wave([0.0], 2**60):
        pass
    assert losses[2] < plain.least


def test_suppressed_records_stay_suppressed() -> None:
    data = table(2, 100)
    rules = data.rules(POLICIES[0])
    labels = dealt(rules, 5).labels.copy()
    away = np.flatnonzero(labels == 4)
    labels[away] = -1
    found = relocate(data.codes, data.space("ncp"), rules, Partition(labels), effort=0.02)
    assert (np.flatnonzero(found.labels < 0) == away).all()
    assert not rules.deficits(found.labels, found.classes).any()
    assert (found.labels != labels).any()


def test_blocks_of_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(4, 150)
    rules, space = data.rules(POLICIES[5]), data.space("ncp")
    start = dealt(rules, 20)
    monkeypatch.setattr(module, "BLOCK", 4)
    state = search(data, rules, space, start)
    blocks = list(state.blocks())
    assert max(map(len, blocks)) <= 4 and sorted(np.concatenate(blocks).tolist()) == list(range(start.classes))
    found = relocate(data.codes, space, rules, start, effort=0.05)
    assert total_loss(data, space, found) < total_loss(data, space, start)
    assert not rules.deficits(found.labels, found.classes).any()


def test_nothing_to_do() -> None:
    data = table(0)
    rules, space = data.rules(POLICIES[0]), data.space("ncp")
    one = Partition(np.zeros(data.n, dtype=np.int32))
    assert relocate(data.codes, space, rules, one) is one
    two = dealt(data.rules(Policy((shoal.KAnonymity(2),))), 2)
    only_size = relocate(data.codes, space, data.rules(Policy((shoal.KAnonymity(2),))), two, effort=0.02)
    assert only_size.sizes.min() >= 2


@pytest.mark.parametrize("effort", ["slow", 0, -1.0, float("nan"), float("inf")])
def test_effort_out_of_range_is_refused(effort: object) -> None:
    data = table(0)
    rules = data.rules(POLICIES[0])
    with pytest.raises(ConfigError, match=r"refine = .* is not allowed"):
        relocate(data.codes, data.space("ncp"), rules, dealt(rules, 2), effort=effort)
