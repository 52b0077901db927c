"""The lower bound: never above the optimum, certified box by box."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from tests.reference.bounds import best_certificate, optimum
from tests.tables import adult, random_table

import shoal
from shoal.errors import UnsupportedError
from shoal.measures.bounds import Part, _total, check_certificate, loss_bound
from shoal.measures.certificate import TICKS
from shoal.measures.conditions import caps, distinct_demands
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
    """The certificate box by box, without anything of the bound."""
    k = data.rules(policy).k
    return all(np.sort(u[inside])[-k:].sum() <= k * loss + 1e-9 for inside, loss in boxes_of(data, policy, measure))


def boxes_of(data: Microdata, policy: Policy, measure: str) -> list[tuple[list[int], float]]:
    """Every good subset as its box: all records that it takes in for free, and its loss."""
    space, rules, n = data.space(measure), data.rules(policy), data.n  # type: ignore[arg-type]
    masks = np.arange(1, 1 << n)
    members = [np.array([r for r in range(n) if mask >> r & 1]) for mask in masks]
    sizes = np.array([len(own) for own in members])
    units = np.append(0.0, space.unit(space.states(data.codes, np.concatenate(members), np.cumsum(sizes) - sizes)))
    return [
        ([r for r in range(n) if units[mask | 1 << r] <= units[mask] + 1e-12], float(units[mask]))
        for mask, own in zip(masks, members, strict=True)
        if rules.ok(own)
    ]


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
        quick, full = (loss_bound(data.codes, space, rules, effort=effort) for effort in ("quick", "fast"))
        assert quick.total <= best + 1e-9
        assert full.total <= best + 1e-9
        assert full.total >= quick.total - 1e-9
        assert check_certificate(data.codes, space, rules, full)
        assert obeys_every_box(data, policy, measure, full.u)


@pytest.mark.parametrize("seed", range(12))
def test_as_good_as_the_theorem_allows(seed: int) -> None:
    """Raise and project ends at the optimum of its linear program, where every box is looked at: one number, and taxonomies."""
    random = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {"age": random.integers(20, 60, 8), "place": random.choice(["41076", "41099", "42001", "53111", "53112"], 8)}
    )
    schema = {"age": {"role": "quasi"}, "place": {"role": "quasi", "taxonomy": {"prefix": [3, 1, 0]}}}
    data, k = Microdata.from_frame(frame, schema), 2 + seed % 3
    policy = Policy((shoal.KAnonymity(k),))
    best = best_certificate(data.n, k, boxes_of(data, policy, "ncp"))
    found = loss_bound(data.codes, data.space("ncp"), data.rules(policy))
    assert 0.999 * best <= found.total <= best


def implied(policy: Policy, data: Microdata) -> list[int]:
    return [p for _, _, p in distinct_demands(data.rules(policy))]


def test_values_that_other_models_imply() -> None:
    """Shares of four values: 0.4, 0.3, 0.2, 0.1."""
    frame = pl.DataFrame({"age": range(20), "ill": ["a"] * 8 + ["b"] * 6 + ["c"] * 4 + ["d"] * 2})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    k = shoal.KAnonymity(2)
    assert implied(k & shoal.TCloseness(0.35, distance="equal"), data) == [2]
    assert implied(k & shoal.TCloseness(0.25, distance="equal"), data) == [3]
    assert implied(k & shoal.TCloseness(0.05, distance="equal"), data) == [4]
    assert implied(k & shoal.LDiversity(2.5, variant="entropy"), data) == [3]
    assert implied(k & shoal.LDiversity(3, variant="recursive", c=2.0), data) == [3]
    assert implied(k & shoal.AlphaK(0.4), data) == [3]
    assert implied(k & shoal.PSensitive(2) & shoal.LDiversity(2.5, variant="entropy"), data) == [3]
    assert implied(Policy((k,)), data) == []


@pytest.mark.parametrize("seed", range(30))
def test_never_above_the_optimum_whatever_the_model(seed: int) -> None:
    data = random_table(seed, n=7, missing=0.0)
    models = (
        shoal.TCloseness(0.35, distance="equal"),
        shoal.LDiversity(2.2, variant="entropy"),
        shoal.LDiversity(2, variant="recursive", c=3.0),
        shoal.AlphaK(0.5),
        shoal.TCloseness(0.3, distance="hierarchical"),
    )
    policy = shoal.KAnonymity(2) & models[seed % len(models)]
    best = best_of(data, policy, "ncp")
    if np.isfinite(best):
        rules, space = data.rules(policy), data.space("ncp")
        found = loss_bound(data.codes, space, rules)
        assert found.total <= best + 1e-9
        assert check_certificate(data.codes, space, rules, found)
        assert obeys_every_box(data, policy, "ncp", found.u)


def test_too_many_boxes_are_looked_at_group_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(2, n=60)
    rules, space = data.rules(Policy((shoal.KAnonymity(3),))), data.space("ncp")
    whole = loss_bound(data.codes, space, rules)
    monkeypatch.setattr("shoal.measures.bounds.MOST_PLACES", 400)
    by_distances = loss_bound(data.codes, space, rules)
    assert [part.by for part in by_distances.parts] == ["farthest"]
    assert check_certificate(data.codes, space, rules, by_distances)
    # Nothing by distances, whatever they promise.
    monkeypatch.setattr("shoal.measures.bounds.CLEARLY", np.inf)
    monkeypatch.setattr("shoal.measures.bounds.SHARE", 0.0)
    found = loss_bound(data.codes, space, rules)
    assert [len(whole.parts), len(found.parts) > 1] == [1, True]
    assert sorted(a for part in found.parts for a in part.attributes) == list(range(len(data.quasi)))
    assert 0 < found.total <= whole.total
    assert check_certificate(data.codes, space, rules, found)
    twice = type(found)(found.total, found.mean, (*found.parts, found.parts[0]))
    assert not check_certificate(data.codes, space, rules, twice)
    assert not check_certificate(data.codes, space, rules, type(found)(found.total * 1.01, found.mean, found.parts))


def test_the_certificate_is_in_whole_ticks() -> None:
    data = random_table(5, n=40)
    rules, space = data.rules(Policy((shoal.KAnonymity(4),))), data.space("ncp")
    found = loss_bound(data.codes, space, rules)
    ticks = found.u * TICKS
    assert (ticks == np.floor(ticks)).all()
    # One record that has a hundred-thousandth more breaks a box, for all but those that no box binds yet.
    broken = 0
    for record in np.flatnonzero(found.u > 0):
        more = found.u.copy()
        more[record] += 1e-5
        broken += not check_certificate(data.codes, space, rules, more)
    assert broken > 0.9 * np.count_nonzero(found.u > 0)


def test_what_is_claimed_is_rounded_down() -> None:
    """A sum of more than 2⁵³ ticks has no float of its own; one that is rounded up claims more than its numbers come to."""
    up = 0
    for seed in range(200):
        ticks = np.random.default_rng(seed).integers(2**49, 2**50, 60)
        total = _total([Part((0,), ticks / TICKS)])
        exactly = sum(int(one) for one in ticks)
        assert exactly - 2**4 < int(total * TICKS) <= exactly
        up += int(float(exactly)) > exactly
    assert up > 50


def test_a_forged_certificate_is_refused() -> None:
    data = random_table(3, n=12)
    rules, space = data.rules(Policy((shoal.KAnonymity(3),))), data.space("ncp")
    honest = loss_bound(data.codes, space, rules)
    assert honest.total > 0
    assert not check_certificate(data.codes, space, rules, honest.u + 0.5)
    assert not check_certificate(data.codes, space, rules, -honest.u - 0.1)


def test_the_certificate_is_refused_exactly_where_a_box_disobeys() -> None:
    """A number with holes beside names, and numbers around what the boxes allow: every box of the family by hand."""
    refused = 0
    for seed in range(150):
        random = np.random.default_rng(seed)
        n, k = int(random.integers(4, 12)), int(random.integers(2, 4))
        ages = [None if random.random() < 0.25 else int(age) for age in random.choice([20, 21, 25, 40, 80], n)]
        frame = pl.DataFrame({"age": ages, "town": random.choice(["a", "b", "c"], n)})
        roles = {"age": {"role": "quasi", "kind": "number", "domain": [0, 100]}, "town": {"role": "quasi"}}
        data = Microdata.from_frame(frame, roles)
        rules, space = data.rules(Policy((shoal.KAnonymity(k),))), data.space("ncp")
        boxes = boxes_of_number_and_names(frame)
        limits = [k * loss for inside, loss in boxes if len(inside) >= k]
        u = random.random(n) * 1.5 * (min(limits, default=1.0) + random.choice([0.0, 0.1, 0.5])) / k
        obeys = all(np.sort(u[inside])[-k:].sum() <= k * loss + 1e-9 for inside, loss in boxes if len(inside) >= k)
        near = any(abs(np.sort(u[inside])[-k:].sum() - k * loss) < 1e-6 for inside, loss in boxes if len(inside) >= k)
        if not near:
            assert check_certificate(data.codes, space, rules, u) == obeys, seed
            refused += not obeys
    assert 20 < refused < 130


def boxes_of_number_and_names(frame: pl.DataFrame) -> list[tuple[list[int], float]]:
    """All boxes of the family: a range of ages, no age, or anything; a town, or any; who is inside, and the loss."""
    ages, towns = frame["age"].to_list(), frame["town"].to_list()
    known = sorted({age for age in ages if age is not None})
    of_ages = [
        ({a for a in known if low <= a <= high}, (high - low) / 100) for low in known for high in known if low <= high
    ]
    if None in ages:
        of_ages += [({None}, 0.0), ({None, *known}, 1.0)] if known else [({None}, 0.0)]
    names = sorted(set(towns))
    of_towns = [({name}, 0.0) for name in names]
    if len(names) > 1:
        # Any two names lose at least what two do; the family takes in all of them for that.
        of_towns.append((set(names), 2 / len(names)))
    return [
        ([r for r in range(len(ages)) if ages[r] in some and towns[r] in others], loss + more)
        for some, loss in of_ages
        for others, more in of_towns
    ]


def test_equal_records_lose_nothing() -> None:
    data = random_table(1, n=6, missing=0.0).take(np.zeros(6, dtype=np.int64))
    rules = data.rules(Policy((shoal.KAnonymity(2),)))
    assert loss_bound(data.codes, data.space("il"), rules).total == 0


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
    quick = loss_bound(data.codes, data.space("granularity"), rules, effort="quick")
    full = loss_bound(data.codes, data.space("granularity"), rules)
    assert 0 < quick.mean <= full.mean < 0.2
    assert check_certificate(data.codes, data.space("granularity"), rules, full.u)


def test_far_too_many_boxes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.measures.bounds.MOST_PLACES", 10)
    data = random_table(2, n=40)
    with pytest.raises(UnsupportedError, match="too many"):
        loss_bound(data.codes, data.space("il"), data.rules(Policy((shoal.KAnonymity(2),))), effort="quick")


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
