"""The lower bound: never above the optimum, certified box by box."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.bounds import optimum
from tests.tables import adult, random_table

import shoal
from shoal.errors import UnsupportedError
from shoal.measures.bounds import check_certificate, loss_bound
from shoal.measures.conditions import caps
from shoal.microdata import Microdata
from shoal.policy import Policy, Rules

MEASURES = ("il", "ncp", "granularity")


def best_of(data: Microdata, policy: Policy, measure: str) -> float:
    space, rules = data.space(measure), data.rules(policy)  # type: ignore[arg-type]

    def cost(classes: list[list[int]]) -> list[float]:
        if not classes:
            return []
        order = np.array([r for members in classes for r in members])
        sizes = np.array([len(members) for members in classes])
        starts = np.cumsum(sizes) - sizes
        return (space.unit(space.states(data.codes, order, starts)) * sizes).tolist()

    return optimum(data.n, cost, lambda members: rules.ok(np.array(members)))


def obeys_every_box(data: Microdata, policy: Policy, measure: str, u: np.ndarray) -> bool:
    """The certificate box by box, without anything of the bound: every good subset, and all records its box takes in for free."""
    space, rules, n = data.space(measure), data.rules(policy), data.n  # type: ignore[arg-type]
    masks = np.arange(1, 1 << n)
    members = [np.array([r for r in range(n) if mask >> r & 1]) for mask in masks]
    sizes = np.array([len(own) for own in members])
    units = np.append(0.0, space.unit(space.states(data.codes, np.concatenate(members), np.cumsum(sizes) - sizes)))
    for mask, own in zip(masks, members, strict=True):
        if rules.ok(own):
            inside = [r for r in range(n) if units[mask | 1 << r] <= units[mask] + 1e-12]
            highest = np.sort(u[inside])[-rules.k :].sum()
            if highest > rules.k * units[mask] + 1e-9:
                return False
    return True


@pytest.mark.parametrize("block", range(10))
def test_never_above_the_optimum(block: int) -> None:
    """500 random tables of up to 9 records in ten blocks: mixed domains, all losses, k and p."""
    for seed in range(50 * block, 50 * block + 50):
        data = random_table(seed, n=5 + seed % 3 if seed % 25 else 9)
        k, p = 2 + seed % 2, 1 + seed % 3
        policy = shoal.KAnonymity(k) & shoal.PSensitive(p)
        measure = MEASURES[seed % 3]
        best = best_of(data, policy, measure)
        if not np.isfinite(best):
            continue
        rules, space = data.rules(policy), data.space(measure)  # type: ignore[arg-type]
        quick, full = (loss_bound(data.codes, space, rules, effort=effort) for effort in ("quick", "full"))
        assert quick.total <= best + 1e-9
        assert full.total <= best + 1e-9
        assert full.total >= quick.total - 1e-9
        assert check_certificate(data.codes, space, rules, full.u)
        assert obeys_every_box(data, policy, measure, full.u)


def test_a_forged_certificate_is_refused() -> None:
    data = random_table(3, n=12)
    rules, space = data.rules(Policy((shoal.KAnonymity(3),))), data.space("ncp")
    honest = loss_bound(data.codes, space, rules, effort="full")
    assert honest.total > 0
    assert not check_certificate(data.codes, space, rules, honest.u + 0.5)
    assert not check_certificate(data.codes, space, rules, -honest.u - 0.1)


def test_equal_records_lose_nothing() -> None:
    data = random_table(1, n=6, missing=0.0).take(np.zeros(6, dtype=np.int64))
    rules = data.rules(Policy((shoal.KAnonymity(2),)))
    assert loss_bound(data.codes, data.space("il"), rules, effort="full").total == 0


def test_more_asked_is_more_lost() -> None:
    data = random_table(6, n=60)
    bounds = [
        loss_bound(data.codes, data.space("ncp"), data.rules(Policy((shoal.KAnonymity(k),)))).total for k in (2, 4, 8)
    ]
    assert bounds[0] < bounds[1] < bounds[2]
    diverse = data.rules(shoal.KAnonymity(2) & shoal.PSensitive(4))
    assert loss_bound(data.codes, data.space("ncp"), diverse).total > bounds[0]


def test_adult_quickly() -> None:
    data = adult(2000, quasi=("age", "sex", "race", "marital-status", "workclass"))
    if data is None:
        pytest.skip("the reference data (SHOAL_DATA) is not on this machine")
    rules = data.rules(Policy((shoal.KAnonymity(5),)))
    quick = loss_bound(data.codes, data.space("granularity"), rules)
    full = loss_bound(data.codes, data.space("granularity"), rules, effort="full")
    assert 0 < quick.mean <= full.mean < 0.2
    assert check_certificate(data.codes, data.space("granularity"), rules, full.u)


def test_too_many_boxes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.measures.bounds.MOST_PLACES", 10)
    data = random_table(2, n=40)
    with pytest.raises(UnsupportedError, match="too many"):
        loss_bound(data.codes, data.space("il"), data.rules(Policy((shoal.KAnonymity(2),))))


def most_classes_of(rules: Rules, k: int) -> tuple[int, list[int]]:
    """The most classes there can be and the most even sizes that so many can have."""
    most = max(1, min(rules.max_classes, rules.n // max(1, k)))
    sizes = [0] * most
    for record in range(rules.n):
        sizes[record % most] += 1
    return most, sizes


@pytest.mark.parametrize(("n", "k", "p"), [(50, 7, 2), (50, 3, 5), (23, 5, 1), (6, 7, 1), (12, 4, 1), (31, 1, 3)])
def test_caps_follow(n: int, k: int, p: int) -> None:
    rules = random_table(4, n=n).rules(shoal.KAnonymity(k) & shoal.PSensitive(p))
    most, sizes = most_classes_of(rules, k)
    found = caps(rules, k)
    assert (found.classes, found.avg) == (most, pytest.approx(n / (k * most)))
    assert found.dm == sum(size**2 for size in sizes)
