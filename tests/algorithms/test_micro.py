"""Microaggregation: golden values, the naive twins record for record, the paper's tables, any policy."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import micro as twin
from tests.reference import models as naive
from tests.tables import ILLNESSES, random_table

import shoal
from shoal import KPQR, AlphaK, KAnonymity, LDiversity, Microdata, PSensitive, TCloseness, datasets
from shoal.algorithms import features as features_module
from shoal.algorithms import run
from shoal.algorithms.features import feature_matrix
from shoal.algorithms.mdav import Growth, far_groups
from shoal.errors import ConfigError, InfeasibleError, InputError, UnsupportedError
from shoal.measures.loss import sse
from shoal.models import MODELS, Model
from shoal.models.kpqr import RareRule
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.space import Interval, Set, Tree

ALGORITHMS = ("mdav", "p_mdav", "kpqr")
PLANE = {"x": [1, 2, 1, 8, 9, 8, 5], "y": [1, 1, 2, 8, 8, 9, 5]}
LINE = {"x": [1, 2, 3, 10, 11, 12, 20, 21, 30]}


def made(name: str, data: Microdata, *models: Model, seed: int = 0, **options: Any) -> Partition:
    return run(name, data, data.rules(Policy(models)), seed=seed, options=options)


def numbers(columns: dict[str, list[Any]], sensitive: dict[str, list[Any]] | None = None) -> Microdata:
    schema = {name: {"role": "quasi"} for name in columns} | {name: {"role": "sensitive"} for name in sensitive or {}}
    return Microdata.from_frame(pl.DataFrame(columns | (sensitive or {})), schema)


def groups_of(partition: Partition) -> list[list[int]]:
    return sorted(members.tolist() for members in partition.members())


# ---- points


@pytest.mark.parametrize("seed", range(3))
def test_distances_are_those_of_the_definition(seed: int) -> None:
    data = random_table(seed, 30, missing=0.15)
    X = feature_matrix(data)
    expected = np.zeros((data.n, data.n))
    for a, (name, domain) in enumerate(zip(data.quasi, data.domains, strict=True)):
        weight = float(data.schema.attributes[name].weight)
        for i in range(data.n):
            for j in range(data.n):
                expected[i, j] += weight * squared_distance(data, a, domain, data.codes[i, a], data.codes[j, a])
    found = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def squared_distance(data: Microdata, a: int, domain: Any, one: int, two: int) -> float:
    if isinstance(domain, Set):
        return float(one != two)
    if isinstance(domain, Tree):
        paths = [path[::-1] for path in domain.taxonomy.rows()]
        shared = shared_path([paths[one], paths[two]])
        below = max(len(path) for path in paths if path[: len(shared)] == shared) - len(shared)
        return (below / (max(map(len, paths)) - 1)) ** 2 if one != two else 0.0
    known = data.codes[data.codes[:, a] < len(domain.values), a]
    values = domain.values[known]
    places = [(domain.values[c] - values.mean()) / values.std() if c < len(domain.values) else 0.0 for c in (one, two)]
    return (places[0] - places[1]) ** 2 + float((one < len(domain.values)) != (two < len(domain.values)))


def shared_path(paths: list[tuple[str, ...]]) -> tuple[str, ...]:
    return max((paths[0][:i] for i in range(len(paths[0]) + 1) if all(p[:i] == paths[0][:i] for p in paths)), key=len)


def test_numbers_alone_are_their_standardized_columns() -> None:
    columns = {"x": [3.5, 1.0, 2.0, 9.0], "y": [10, 10, 40, 20], "same": [7, 7, 7, 7]}
    X = feature_matrix(numbers(columns))
    for column, name in zip(X.T, columns, strict=True):
        values = np.array(columns[name], dtype=float)
        np.testing.assert_array_equal(column, (values - values.mean()) / (values.std() or 1.0))


def test_ordered_labels_count_by_rank() -> None:
    frame = pl.DataFrame({"size": ["S", "L", "M", None, "S"]})
    data = Microdata.from_frame(frame, {"size": {"role": "quasi", "order": ["S", "M", "L"]}})
    ranks = np.array([0.0, 2.0, 1.0, 0.0])
    X = feature_matrix(data)
    np.testing.assert_allclose(X[[0, 1, 2, 4], 0], (ranks - ranks.mean()) / ranks.std())
    np.testing.assert_array_equal(X[3], [0.0, 1.0])


@pytest.mark.parametrize("taxonomy", [None, {"prefix": [2, 1, 0]}])
def test_wide_attributes_are_projected(taxonomy: dict[str, list[int]] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    zips = [f"{i:03d}" for i in range(0, 800, 4)]
    schema = {"zip": {"role": "quasi", "kind": "category"} | ({"taxonomy": taxonomy} if taxonomy else {})}
    data = Microdata.from_frame(pl.DataFrame({"zip": zips}), schema)
    X = feature_matrix(data)
    assert X.shape == (len(zips), features_module.WIDEST)
    monkeypatch.setattr(features_module, "WIDEST", 10_000)
    pairs = np.triu_indices(len(zips), 1)
    squared, exact = (((Y[pairs[0]] - Y[pairs[1]]) ** 2).sum(axis=1) for Y in (X, feature_matrix(data)))
    assert abs((squared / exact).mean() - 1) < 0.03
    assert (squared / exact).std() < 0.15
    assert squared.min() > 0


# ---- golden values

SMALL = [
    (PLANE, 2, "generic", [[0, 1], [2, 5, 6], [3, 4]], 33.6196),
    (PLANE, 2, "single", [[0, 1], [2, 6], [3, 4, 5]], 9.5738),
    (PLANE, 3, "generic", [[0, 1, 2], [3, 4, 5, 6]], 12.9135),
    (LINE, 3, "generic", [[0, 1, 2], [3, 4, 5], [6, 7, 8]], 8.3381),
    (LINE, 2, "generic", [[0, 1], [2, 3, 4], [5, 6], [7, 8]], 14.3123),
    (LINE, 2, "single", [[0, 1, 2], [3, 4], [5, 6], [7, 8]], 9.6705),
]


@pytest.mark.parametrize(("columns", "k", "form", "groups", "loss"), SMALL)
def test_golden_mdav(columns: dict[str, list[int]], k: int, form: str, groups: list[list[int]], loss: float) -> None:
    data = numbers(columns)
    found = made("mdav", data, KAnonymity(k), form=form)
    assert groups_of(found) == groups
    assert sse(data, found) == pytest.approx(loss, abs=5e-5)


def test_golden_rare_values() -> None:
    keys = [1, 2, 3, 4, 10, 11, 12, 13]
    data = numbers({"key": keys}, {"L": [1, 5, 5, 5, 5, 5, 2, 5]})

    def shown(partition: Partition) -> tuple[list[list[int]], float]:
        return [[keys[i] for i in group] for group in groups_of(partition)], round(sse(data, partition), 2)

    rule = KPQR(2, 0.3, 0.0)
    as_printed = made("kpqr", data, KAnonymity(3), rule, init="order", tail_test="Y")
    assert shown(as_printed) == ([[1, 2, 3, 12], [4, 10, 11, 13]], 70.93)
    assert shown(made("kpqr", data, KAnonymity(3), rule, init="order")) == ([[1, 2, 3, 4], [10, 11, 12, 13]], 5.81)
    diverse = made("p_mdav", data, KAnonymity(3), PSensitive(2), init="order")
    assert shown(diverse) == ([[1, 2, 3], [4, 10, 11, 12, 13]], 30.23)


def test_golden_variances() -> None:
    even, skewed = np.repeat(np.arange(1, 11), 3), np.repeat(np.arange(1, 11), [10] * 9 + [990])
    for values, reference in ((even, {"all": 8.25}), (skewed, {"all": 355 / 144, "rare": 20 / 3})):
        data = numbers({"key": list(range(len(values)))}, {"L": values.tolist()})
        rule = next(r for r in data.rules(Policy((KPQR(2, 0.2, 0.5),))).rules if isinstance(r, RareRule))
        for word, variance in reference.items():
            assert rule.references[word] == pytest.approx(variance, abs=1e-12)


# ---- the tables of Domingo-Ferrer et al. 2008 on Census


@cache
def census(*, left_out: tuple[str, ...] = ("ERNVAL",), shares: tuple[int, ...] = (), seed: int = 0) -> Microdata:
    try:
        table = datasets.census().drop(left_out)
    except InputError as missing:
        pytest.skip(str(missing))
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in table.columns}
    if shares:
        # Another stream than the algorithms', so that seeds and values do not go together.
        values = np.random.default_rng([1, seed]).permutation(np.repeat(np.arange(1, 11), shares))
        table = table.with_columns(secret=pl.Series(values))
        schema["secret"] = {"role": "sensitive"}
    return Microdata.from_frame(table, schema)


EVEN, SKEWED = (108,) * 10, (10,) * 9 + (990,)


def test_census_k_anonymity() -> None:
    thirteen = census(left_out=())
    for k, loss in ((3, 5.6922), (4, 7.4947), (5, 9.0884), (7, 11.5979), (10, 14.1559)):
        assert sse(thirteen, made("mdav", thirteen, KAnonymity(k))) == pytest.approx(loss, abs=5e-5)
    twelve = census()
    for k, loss in ((3, 5.58723), (4, 7.52733), (5, 9.21171), (7, 11.53596)):
        assert sse(twelve, made("mdav", twelve, KAnonymity(k), form="single")) == pytest.approx(loss, abs=5e-6)


@pytest.mark.parametrize(
    ("k", "p", "shares", "mean", "deviation"),
    [(3, 2, EVEN, 7.18, 0.31), (7, 5, EVEN, 14.30, 0.58), (4, 3, SKEWED, 22.34, 0.98)],
)
def test_census_p_sensitive(k: int, p: int, shares: tuple[int, ...], mean: float, deviation: float) -> None:
    losses = [
        sse(
            census(shares=shares, seed=s),
            made("p_mdav", census(shares=shares, seed=s), KAnonymity(k), PSensitive(p), seed=s),
        )
        for s in range(20)
    ]
    # Two means of twenty seeds each differ by less than this in all but a few of a thousand cases.
    assert abs(np.mean(losses) - mean) < 3 * deviation * np.sqrt(2 / 20)


@pytest.mark.parametrize(
    ("k", "p", "r", "shares", "mean", "deviation"),
    [(5, 4, 0.3, EVEN, 12.04, 0.59), (3, 2, 0.5, SKEWED, 7.07, 0.54)],
)
def test_census_kpqr(k: int, p: int, r: float, shares: tuple[int, ...], mean: float, deviation: float) -> None:
    rule = KPQR(p, 0.2, r, reference="rare")
    losses = []
    for s in range(10):
        data = census(shares=shares, seed=s)
        losses.append(sse(data, made("kpqr", data, KAnonymity(k), rule, seed=s, tail_test="Y")))
    assert abs(np.mean(losses) - mean) < 3 * deviation * np.sqrt(1 / 10 + 1 / 40)


# ---- the twins


def naive_about(name: str, data: Microdata) -> naive.About:
    if name == "illness":
        return naive.About(parent={child: above for row in ILLNESSES for child, above in pairwise(row)})
    known = sorted({v for v in data.frame[name].to_list() if v is not None})
    return naive.About(number={v: float(v) for v in known}, rank={v: i for i, v in enumerate(known)})


def attribute(
    data: Microdata, name: str, p: int, q: float, r: float, reference: str = "all", t: float | None = None
) -> twin.Attribute:
    about, values = naive_about(name, data), data.frame[name].to_list()
    distance = "hierarchical" if name == "illness" else "ordered"

    def squared(a: Any, b: Any) -> float:
        return (a - b) ** 2 if about.number else naive.tree_distance(about, a, b) ** 2

    def excess(group: Sequence[int]) -> float:
        return float(naive.emd([values[i] for i in group], values, about, distance)) - (t or 0.0)

    return twin.Attribute(values, squared, p, q, r, reference, None if t is None else remembered(excess))


def remembered(function: Any) -> Any:
    """Answers by set of records: the twins ask the same again and again."""
    known: dict[tuple[int, ...], Any] = {}

    def ask(group: Sequence[int]) -> Any:
        key = tuple(sorted(group))
        if key not in known:
            known[key] = function(key)
        return known[key]

    return ask


def lacks_of(k: int, *more: Any) -> twin.Lacks:
    return remembered(lambda group: max(0, k - len(group)) + sum(part(group) for part in more))


def few_values(data: Microdata, name: str, p: int) -> Any:
    values = data.frame[name].to_list()
    return lambda group: float(max(0, p - twin.distinct(values, group)))


def too_far(data: Microdata, name: str, t: float) -> Any:
    values, about = data.frame[name].to_list(), naive_about(name, data)

    def over(group: Sequence[int]) -> float:
        far = (
            float(
                naive.emd([values[i] for i in group], values, about, "hierarchical" if name == "illness" else "ordered")
            )
            - t
        )
        return far if far > 1e-12 else 0.0

    return over


def shown(data: Microdata) -> Any:
    """What a group publishes: lowest and highest code, common path, or set of codes."""

    def of(group: Sequence[int]) -> tuple[Any, ...]:
        parts: list[Any] = []
        for a, domain in enumerate(data.domains):
            codes = data.codes[list(group), a]
            if isinstance(domain, Interval):
                parts.append((codes.min(), codes.max()))
            elif isinstance(domain, Set):
                parts.append(frozenset(codes.tolist()))
            else:
                parts.append(shared_path([domain.taxonomy.path(int(code))[::-1] for code in codes]))
        return tuple(parts)

    return of


def same_groups(partition: Partition, expected: list[list[int]] | None) -> bool:
    return expected is not None and groups_of(partition) == sorted(sorted(group) for group in expected)


@pytest.mark.parametrize("seed", range(12))
def test_mdav_grows_as_its_twin(seed: int) -> None:
    data = random_table(seed, 30 + 5 * seed, sensitive=2, missing=0.05)
    X, k = feature_matrix(data), 2 + seed % 3
    form = ("generic", "single")[seed % 2]
    for models, parts, closed in (
        ((PSensitive(3, "illness"),), (few_values(data, "illness", 3),), True),
        ((TCloseness(0.3, "income"),), (too_far(data, "income", 0.3),), False),
        ((PSensitive(2), TCloseness(0.4, "illness")),
         (few_values(data, "illness", 2), few_values(data, "income", 2), too_far(data, "illness", 0.4)), False),
    ):  # fmt: skip
        rules = data.rules(Policy((KAnonymity(k), *models)))
        lacks = lacks_of(rules.k, *parts)
        expected = twin.finish(X, twin.mdav_grown(X, rules.k, form, lacks), lacks, closed, None)
        assert same_groups(made("mdav", data, KAnonymity(k), *models, form=form), expected)


@pytest.mark.parametrize("seed", range(40))
def test_p_mdav_as_its_twin(seed: int) -> None:
    data = random_table(100 + seed, 30 + 2 * seed, sensitive=1 + seed % 2, missing=0.05)
    X, k, p = feature_matrix(data), 2 + seed % 4, 2 + seed % 3
    names = ["illness", "income"][: 1 + seed % 2]
    wanted = [(data.frame[name].to_list(), p) for name in names]
    init = ("random", "farthest", "order")[seed % 3]
    order = {"random": np.random.default_rng(seed).permutation(data.n).tolist(), "order": list(range(data.n))}.get(init)
    lacks = lacks_of(k, *(few_values(data, name, p) for name in names))
    expected = twin.finish(X, twin.p_mdav(X, max(k, p), wanted, lacks, order), lacks, True, None)
    assert same_groups(made("p_mdav", data, KAnonymity(k), PSensitive(p), init=init, seed=seed), expected)


@pytest.mark.parametrize("seed", range(40))
def test_kpqr_as_its_twin(seed: int) -> None:
    data = random_table(200 + seed, 30 + seed, sensitive=2, missing=0.05, values=5 + seed % 3)
    X, k, p = feature_matrix(data), 2 + seed % 4, 2 + seed % 2
    q, r = (0.15, 0.3, 1.0)[seed % 3], (0.0, 0.3, 0.6, 0.8)[seed % 4]
    reference, tail = ("all", "rare")[seed // 2 % 2], "XY"[seed // 3 % 2]
    t = 0.35 if seed % 5 == 0 and reference == "all" else None
    names = (["illness"], ["income"], ["illness", "income"])[seed // 4 % 3]
    more = seed % 7 == 0
    models: list[Model] = [KPQR(p, q, r, name, reference) for name in names]
    attributes = [attribute(data, name, p, q, r, reference, t) for name in names]
    parts: list[Any] = [a.lacks for a in attributes]
    if more:
        models.append(PSensitive(2, "income"))
        parts.append(few_values(data, "income", 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a reference without variance is announced, and nothing is asked of it
        rules = data.rules(Policy((KAnonymity(k), *models)))
        order = [i for i in range(data.n) if any(a.obliges([i]) for a in attributes)]
        if seed % 2:
            order = np.random.default_rng(seed).permutation(order).tolist()
        lacks = lacks_of(k, *parts)
        found = twin.kpqr(X, rules.k, attributes, lacks, order, seed % 8 > 3, tail, more)
        all_parts = [*parts, lambda group: twin.excess(attributes, group, group)]
        expected = twin.finish(X, found, lacks_of(k, *all_parts), False, shown(data))
        options = {"init": ("order", "random")[seed % 2], "prefer_variance": seed % 8 > 3, "tail_test": tail, "t": t}
        partition = made("kpqr", data, KAnonymity(k), *models, seed=seed, **options)
    assert same_groups(partition, expected)


# ---- what follows from the definitions


@pytest.mark.parametrize("seed", range(4))
def test_growth_with_k_alone_is_mdav(seed: int) -> None:
    from shoal.kernels.mdav import mdav_labels

    X = np.random.default_rng(seed).integers(0, 9, (150 + seed, 3)).astype(float)
    data = numbers({"x": list(range(len(X)))})
    growth = Growth(data.rules(Policy((KAnonymity(3 + seed),))))
    for form in ("generic", "single"):
        labels = far_groups(X, np.arange(len(X)), growth, form, lambda share: None)
        np.testing.assert_array_equal(labels, mdav_labels(X, 3 + seed, form))


@pytest.mark.parametrize("seed", range(3))
def test_nothing_rare_is_mdav(seed: int) -> None:
    data = random_table(seed, 90, missing=0.0)
    single = made("mdav", data, KAnonymity(4), form="single")
    for models in ((KPQR(3, 0.0, 0.9),), ()):
        assert groups_of(made("kpqr", data, KAnonymity(4), *models, seed=seed)) == groups_of(single)


def test_everything_rare_obliges_every_class() -> None:
    data = random_table(3, 120, missing=0.0)
    rules = data.rules(Policy((KAnonymity(3), KPQR(3, 1.0, 0.4))))
    rule = next(r for r in rules.rules if isinstance(r, RareRule))
    found = run("kpqr", data, rules)
    counts = rules.stats(found.labels, found.classes).counts[0]
    assert found.classes > 5
    assert rule.obliged(counts).all()
    assert (np.count_nonzero(counts, axis=1) >= 3).all()
    assert (rule.ratios(counts) >= 0.4 - 1e-12).all()


def test_without_variance_rare_groups_are_p_sensitive_groups() -> None:
    data = random_table(8, 100, missing=0.0)
    rare = made("kpqr", data, KAnonymity(4), KPQR(3, 1.0, 0.0), init="order")
    other = made("kpqr", data, KAnonymity(4), KPQR(3, 1.0, 0.0, reference="rare"), init="order")
    np.testing.assert_array_equal(rare.labels, other.labels)
    diverse = groups_of(made("p_mdav", data, KAnonymity(4), PSensitive(3), init="order"))
    # The records for which no group is left join the last group here, and the nearest groups there.
    inside = [group for group in groups_of(rare) if any(set(group) <= set(other) for other in diverse)]
    assert len(inside) >= rare.classes - 1 > 12


@pytest.mark.parametrize("prefer_variance", [False, True])
def test_the_same_attribute_twice_changes_nothing(prefer_variance: bool) -> None:
    one = random_table(11, 80, missing=0.0)
    frame = one.frame.select("age", "height", "income").with_columns(again=pl.col("income"))
    roles = {"age": "quasi", "height": "quasi", "income": "sensitive", "again": "sensitive"}
    data = Microdata.from_frame(frame, {name: {"role": role} for name, role in roles.items()})
    for r in (0.0, 0.5):
        once = made("kpqr", data, KAnonymity(3), KPQR(3, 0.3, r, "income"), prefer_variance=prefer_variance)
        twice = made("kpqr", data, KAnonymity(3), KPQR(3, 0.3, r), prefer_variance=prefer_variance)
        np.testing.assert_array_equal(once.labels, twice.labels)


def test_obliged_classes_keep_t() -> None:
    data = random_table(21, 200, missing=0.0)
    about, values = naive_about("illness", data), data.frame["illness"].to_list()
    rule = KPQR(2, 0.2, 0.2, "illness")
    loose, close = (made("kpqr", data, KAnonymity(3), rule, t=t) for t in (None, 0.15))
    obliging = attribute(data, "illness", 2, 0.2, 0.2)

    def worst(partition: Partition, obliged: bool) -> float:
        groups = [g for g in groups_of(partition) if obliging.obliges(g) == obliged]
        return max(float(naive.emd([values[i] for i in g], values, about, "hierarchical")) for g in groups)

    assert worst(loose, True) > 0.15
    assert worst(close, True) <= 0.15 + 1e-12 < worst(close, False)
    assert close.notes["t"] == 0.15


def test_variance_of_rare_records_may_be_out_of_reach_of_the_whole_table() -> None:
    random = np.random.default_rng(2)
    secret = random.permutation(np.repeat(np.arange(1, 11), [3] * 9 + [273])).tolist()
    data = numbers(
        {"x": random.standard_normal(300).tolist(), "y": random.standard_normal(300).tolist()}, {"L": secret}
    )
    models = (KAnonymity(3), KPQR(2, 0.2, 0.5, reference="rare"))
    rules = data.rules(Policy(models))
    assert not rules.ok(np.arange(data.n))
    for name in ALGORITHMS:
        found = made(name, data, *models)
        assert not (rules.deficits(found.labels, found.classes) > 0).any()
        assert found.classes > 50
    with pytest.raises(UnsupportedError, match=r"cannot promise t = 0\.01"):
        made("kpqr", data, *models, t=0.01)
    ratios = made("kpqr", data, *models).notes["variance_ratios"].popitem()[1]
    assert ratios["rare"] >= 0.5
    assert ratios["all"] > ratios["rare"]


# ---- any policy

DEMANDING = [model for kind in MODELS.values() for model in kind.examples()]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_model_is_satisfied_or_refused(name: str) -> None:
    data = random_table(5, 110, sensitive=2, missing=0.04)
    released = 0
    for model in DEMANDING:
        try:
            policy = Policy((KAnonymity(3), model))
            rules = data.rules(policy)
            found = run(name, data, rules)
        except (InfeasibleError, UnsupportedError, ConfigError):
            continue
        released += 1
        assert not (rules.deficits(found.labels, found.classes) > 0).any()
        assert found.suppressed == 0
        np.testing.assert_array_equal(found.labels, run(name, data, rules).labels)
    assert released > len(DEMANDING) / 2


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("recode", ["generalize", "microaggregate"])
def test_releases_are_verified(name: str, recode: Any) -> None:
    data = random_table(6, 90, missing=0.03)
    policy = KAnonymity(3) & LDiversity(2, variant="entropy") & KPQR(2, 0.2, 0.3) & AlphaK(0.6)
    release = shoal.anonymize(data, policy, algorithm=name, refine=False, recode=recode, order="keep")
    assert release.verify().passed
    if recode == "microaggregate":
        heights, labels = data.frame["height"].to_numpy(), release.partition.labels
        means = [heights[labels == label].mean() for label in labels]
        np.testing.assert_allclose(release.frame["height"].to_numpy(), means)


def test_rules_that_only_python_can_evaluate_are_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_table(9, 80, missing=0.0)
    rules = data.rules(Policy((KAnonymity(2), PSensitive(3))))
    monkeypatch.setattr(type(rules.rules[1]), "forms", lambda rule: None)
    for name in ALGORITHMS:
        found = run(name, data, rules)
        assert not (rules.deficits(found.labels, found.classes) > 0).any()
        assert found.notes["merged_for"] == {str(rules.rules[1]): found.notes["merged_for"][str(rules.rules[1])]}


def test_seeds_and_progress() -> None:
    data = random_table(7, 150, missing=0.0)
    shares: list[float] = []
    rules = data.rules(Policy((KAnonymity(3), PSensitive(2), KPQR(2, 0.5, 0.1))))
    for name in ("p_mdav", "kpqr"):
        first = run(name, data, rules, seed=1, progress=shares.append)
        np.testing.assert_array_equal(first.labels, run(name, data, rules, seed=1).labels)
        assert not np.array_equal(first.labels, run(name, data, rules, seed=2).labels)
    assert shares[-1] == 1.0
    assert all(0 <= share <= 1 for share in shares)


def test_refusals() -> None:
    data = random_table(2, 40)
    for name, option, value in (
        ("mdav", "form", "double"),
        ("p_mdav", "init", "nearest"),
        ("kpqr", "init", "farthest"),
        ("kpqr", "tail_test", "Z"),
        ("kpqr", "t", 1.5),
    ):
        with pytest.raises(ConfigError, match=rf"{name}: {option} = .* is not allowed"):
            made(name, data, KAnonymity(2), **{option: value})
    for name in ALGORITHMS:
        with pytest.raises(InfeasibleError, match="k = 41"):
            made(name, data, KAnonymity(41))
