"""Attacks against plain Python on random tables and random sequences of releases: every number that is reported."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.reference import measures as naive
from tests.tables import random_table

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError
from shoal.measures.attacks import homogeneity, linking, run_attacks, similarity, skewness
from shoal.measures.minimality import minimality, minimality_attack, minimality_by_rerun
from shoal.measures.releases import Releases, attack_releases, difference, intersection, tracing
from shoal.measures.seen import MaskedTable
from shoal.partition import Partition

AGE = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
SECRETS = [*"abcd", None]


def random_release(random: np.random.Generator, overlapping: bool = False) -> list[tuple[tuple[int, int], list[Any]]]:
    """Classes of ages from 0 to 29 with the values in them; a region occurs once."""
    cuts = [0, *sorted(random.choice(np.arange(1, 30), int(random.integers(2, 6)), replace=False).tolist()), 30]
    found = []
    for low, high in pairwise(cuts):
        top = min(29, high - 1 + int(random.integers(0, 4)) * overlapping)
        values = [SECRETS[i] for i in random.integers(0, len(SECRETS), int(random.integers(1, 6)))]
        found.append(((low, top), values))
    return found


def frame_of(classes: list[tuple[tuple[int, int], list[Any]]]) -> pl.DataFrame:
    rows = [
        (f"[{low}, {high}]" if low < high else str(low), value) for (low, high), values in classes for value in values
    ]
    return pl.DataFrame(rows, schema={"age": pl.String, "ill": pl.String}, orient="row")


def covering(classes: list[tuple[tuple[int, int], list[Any]]], low: int, high: int) -> list[int]:
    return [c for c, ((a, b), _) in enumerate(classes) if a <= high and low <= b]


@pytest.mark.parametrize("seed", range(12))
def test_intersections(seed: int) -> None:
    random = np.random.default_rng(seed)
    releases = [random_release(random, overlapping=bool(seed % 2)) for _ in range(2 + seed % 2)]
    releases[0] = releases[0][: 1 + seed % 4]  # somebody is in later releases only
    frames = [frame_of(release) for release in releases]
    ages = random.integers(0, 30, 20).tolist()
    for persons in (pl.DataFrame({"age": ages}), None):
        targets = [(age, age) for age in ages] if persons is not None else [region for region, _ in releases[-1]]
        weights = [1] * len(targets) if persons is not None else [len(values) for _, values in releases[-1]]
        found = intersection(Releases.of(frames, AGE, persons), "ill")
        left: list[Counter[str]] = []
        for low, high in targets:
            seen: Counter[str] | None = None
            for release in releases:
                cover = covering(release, low, high)
                if cover:
                    here = Counter(value for c in cover for value in release[c][1] if value is not None)
                    seen = here if seen is None else seen & here
            left.append(seen or Counter())
        assert found.remaining.tolist() == [len(values) for values in left]
        guesses = [max(values.values()) / values.total() if values else 0.0 for values in left]
        assert found.guess.tolist() == pytest.approx(guesses)
        told = found.exposure
        alone = [t for t, values in enumerate(left) if len(values) == 1]
        assert told.exposed == sum(weights[t] for t in alone) and told.total == sum(weights)
        assert told.classes == (() if persons is not None else tuple(alone))
        assert (told.of_classes, told.attack, told.attribute) == (len(releases[-1]), "intersection", "ill")
        assert told.worst == pytest.approx(max(guesses))
        known = [(weight, len(values)) for weight, values in zip(weights, left, strict=True) if values]
        mean = sum(weight / number for weight, number in known) / sum(weight for weight, _ in known) if known else 0.0
        assert told.details["mean_exposure"] == pytest.approx(mean)
        assert told.details["fewest_values"] == min((number for _, number in known), default=0)
        who = "persons" if persons is not None else "records of the newest release"
        assert (f"For {told.exposed} of {told.total} {who} only one value" in told.sentence) == bool(alone)
        assert ("leaves everybody at least two values" in told.sentence) == (not alone)


def naive_changes(older: Any, newer: Any) -> list[tuple[int, int, Counter[Any], Counter[Any]]]:
    """Which class of the older release each of the newer one came from, and what was added and removed."""
    same = {c: o for c, (region, values) in enumerate(newer) for o, (there, old) in enumerate(older) if region == there and Counter(values) == Counter(old)}  # fmt: skip
    changes = []
    for c, ((low, high), values) in enumerate(newer):
        if c in same:
            changes.append((same[c], c, Counter(), Counter()))
            continue
        best: tuple[int, int] | None = None
        for o, ((a, b), old) in enumerate(older):
            nested = (a <= low and high <= b) or (low <= a and b <= high)
            common = (Counter(values) & Counter(old)).total()
            if o not in same.values() and nested and common and (best is None or common > best[0]):
                best = common, o
        if best is not None:
            old = Counter(older[best[1]][1])
            changes.append((best[1], c, Counter(values) - old, old - Counter(values)))
    return changes


@pytest.mark.parametrize("seed", range(12))
def test_differences(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    older = random_release(random)
    newer = [
        (region, values + ["d"] * int(random.integers(0, 3)) + ["a"] * int(random.integers(0, 2)) if random.random() < 0.5 else values[: max(1, len(values) - int(random.integers(0, 2)))])
        for region, values in older
    ]  # fmt: skip
    if seed % 3 == 0 and len(newer) > 1:  # two classes become one
        newer = [((newer[0][0][0], newer[1][0][1]), newer[0][1] + newer[1][1]), *newer[2:]]
    k = 2 + seed % 2
    changes, told = difference(Releases.of([frame_of(older), frame_of(newer)], AGE), k)
    expected = naive_changes(older, newer)
    found = [(c.older, c.newer, Counter(v for (v,) in c.added), Counter(v for (v,) in c.removed)) for c in changes]
    assert found == expected
    exposed, hit = 0, []
    for _, c, added, removed in expected:
        given = (added.total() if added.total() < k or len(added) == 1 else 0) + (removed.total() if removed.total() < k else 0)  # fmt: skip
        exposed += given
        hit += [c] if given else []
    assert (told.exposed, told.classes, told.worst) == (exposed, tuple(hit), float(bool(hit)))
    assert (told.total, told.of_classes) == (sum(len(values) for _, values in newer), len(newer))
    sizes = [(added + removed).total() for _, _, added, removed in expected]
    assert told.details == {
        "fewest_changed_records": min((size for size in sizes if size), default=0),
        "classes_changed_by_fewer_than_k": sum(1 <= size < k for size in sizes),
        "unchanged_classes": sizes.count(0),
        "matched_classes": len(sizes),
    }
    assert (f"gives away the sensitive values of {exposed} records in {len(hit)} classes" in told.sentence) == bool(hit)
    assert ("No class changed by fewer" in told.sentence) == (not hit)


@pytest.mark.parametrize("seed", range(8))
def test_who_can_be_followed(seed: int) -> None:
    random = np.random.default_rng(200 + seed)
    releases = [random_release(random, overlapping=bool(seed % 2)) for _ in range(3)]
    releases[1] = releases[1][1:]  # nobody of the youngest is in the second
    ages = random.integers(0, 30, 25).tolist()
    effective, told = tracing(Releases.of([frame_of(r) for r in releases], AGE, pl.DataFrame({"age": ages})), 3)
    expected = []
    for age in ages:
        fewest = None
        for one, other in pairwise(releases):
            pairs = [(c, d) for c in covering(one, age, age) for d in covering(other, age, age)]
            if pairs:
                most = max(sum(c in covering(one, a, a) and d in covering(other, a, a) for a in ages) for c, d in pairs)
                fewest = most if fewest is None else min(fewest, most)
        expected.append(fewest or 0)
    assert effective.tolist() == expected
    linked = [number for number in expected if number]
    assert told.exposed == sum(number < 3 for number in linked) and told.total == 25
    assert told.details == {"smallest_effective_k": min(linked, default=0), "linked": len(linked)}
    assert told.worst == pytest.approx(1 / min(linked) if linked else 0.0)


def test_releases_without_secrets_are_only_traced() -> None:
    schema = read_schema({"age": {"role": "quasi"}})
    frames = [pl.DataFrame({"age": ["[0, 9]"] * 3}), pl.DataFrame({"age": ["[0, 4]"] * 2})]
    found = attack_releases(frames, schema, 2, pl.DataFrame({"age": [3, 8]}))
    assert [told.attack for told in found] == ["tracing"]
    assert attack_releases(frames, schema, 2) == []
    with pytest.raises(InputError, match="'age' is not a sensitive attribute"):
        intersection(Releases.of(frames, schema), "age")
    with pytest.raises(InputError, match="two releases or more"):
        Releases.of(frames[:1], schema)


@pytest.mark.parametrize("seed", range(10))
def test_similar_numbers(seed: int) -> None:
    random = np.random.default_rng(300 + seed)
    classes = [
        [float(x) if random.random() < 0.85 else None for x in random.integers(-50, 51, int(random.integers(1, 5))) // int(random.integers(1, 9))]
        for _ in range(6)
    ]  # fmt: skip
    rows = [(f"c{i}", value) for i, values in enumerate(classes) for value in values]
    table = MaskedTable.of(pl.DataFrame(rows, schema=["g", "ill"], orient="row"), read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}}))  # fmt: skip
    everybody = [value for values in classes for value in values if value is not None]

    def variance(values: list[float]) -> float:
        return sum((value - sum(values) / len(values)) ** 2 for value in values) / len(values)

    for span, ratio in ((0.1, None), (0.4, None), (0.0, 0.3)):
        hit = []
        for c, values in enumerate(classes):
            known = [value for value in values if value is not None]
            if known and (
                (max(known) - min(known)) / (max(everybody) - min(everybody)) <= span + 1e-12
                or variance(known) / variance(everybody) < (span**2 if ratio is None else ratio)
            ):
                hit.append(c)
        found = similarity(table, table.histograms[0], span, ratio)
        assert found is not None and found.classes == tuple(hit)
        assert found.exposed == sum(value is not None for c in hit for value in classes[c])
        assert found.worst == pytest.approx(len(hit) / 6) and found.total == len(rows) and found.of_classes == 6


def test_numbers_that_do_not_vary_and_values_that_nobody_knows() -> None:
    def table(values: list[Any], **more: Any) -> MaskedTable:
        frame = pl.DataFrame({"g": ["x", "x", "y", "y"], "ill": values})
        return MaskedTable.of(frame, read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive", **more}}))

    same = table([5, 5, 5, 5])
    found = similarity(same, same.histograms[0])
    assert found is not None and found.classes == ()  # nothing to be learnt that the whole table does not say
    order = {"order": ["low", "mid", "high", "top"]}
    words = table(["low", "low", "low", "top"], **order)
    ordered = similarity(words, words.histograms[0])
    assert ordered is not None and ordered.classes == (0,)
    nobody = table([None, None, "flu", "cold"])
    assert homogeneity(nobody, nobody.histograms[0]).classes == ()
    empty = table([None] * 4, kind="category")
    assert skewness(empty, empty.histograms[0]).sentence == "'ill' has no known value."
    assert [told.exposed for told in run_attacks(empty)] == [0, 0, 0]
    assert [told.worst for told in run_attacks(empty)] == [0.0, 0.0, 0.0]


def test_tables_without_records_are_refused() -> None:
    nobody = pl.DataFrame({"age": [], "ill": []}, schema={"age": pl.String, "ill": pl.String})
    with pytest.raises(InputError, match="no records"):
        MaskedTable.of(nobody, AGE)
    one = MaskedTable.of(pl.DataFrame({"age": ["3"], "ill": ["a"]}), AGE)
    assert (one.n, one.sizes.tolist(), one.show(0)) == (1, [1], "age = 3")
    assert (
        MaskedTable.of(
            pl.DataFrame({"age": [None], "ill": ["a"]}, schema={"age": pl.String, "ill": pl.String}), AGE
        ).show(0)
        == "age = missing"
    )
    assert linking(one, pl.DataFrame({"age": [3]})).exposure.exposed == 1


@pytest.mark.parametrize("sizes", [[], [0, 2], [-1, 5]])
def test_groups_without_members_are_refused(sizes: list[int]) -> None:
    with pytest.raises(ConfigError, match="do not fit groups of sizes"):
        minimality(sizes, 0)
    with pytest.raises(ConfigError, match="do not fit groups of sizes"):
        minimality([2, 2], -1)
    assert minimality([1, 1], 2).posterior == (1.0, 1.0) and minimality([2, 2], 0).naive == 0


@pytest.mark.parametrize("seed", range(10))
def test_minimality_of_several_classes(seed: int) -> None:
    random = np.random.default_rng(400 + seed)
    rows, people, expected = [], [], []
    for c in range(4):
        groups = random.integers(1, 4, int(random.integers(1, 4))).tolist()
        values = [SECRETS[i] for i in random.integers(0, 3, sum(groups))]
        names = [f"g{c}{i}" for i in range(len(groups))]
        rows += [("{" + ", ".join(names) + "}" if len(names) > 1 else names[0], value) for value in values]
        known = [name for name, size in zip(names, groups, strict=True) for _ in range(size)]
        people += known[: len(known) - (c == 3)]  # of the last class one person is not known
        expected.append((groups, values, c != 3 and len(groups) > 1))
    schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    table = MaskedTable.of(pl.DataFrame(rows, schema=["g", "ill"], orient="row"), schema)
    found = minimality_attack(table, pl.DataFrame({"g": people}), 0.4)
    exposed, hit, worst = 0, [], 0.0
    for c, (groups, values, tried) in enumerate(expected):
        above = [False] * len(groups)
        for count in Counter(values).values() if tried else ():
            posterior, remaining, _ = naive.minimality(groups, count, Fraction(2, 5))
            if remaining:
                worst = max([worst, *map(float, posterior)])
                above = [one or p > Fraction(2, 5) for one, p in zip(above, posterior, strict=True)]
        exposed += sum(size for size, one in zip(groups, above, strict=True) if one)
        hit += [c] if any(above) else []
    assert (found.exposed, found.classes, found.worst) == (exposed, tuple(hit), pytest.approx(worst))
    attacked = sum(tried for _, _, tried in expected)
    assert found.details == {"attacked_classes": attacked} and found.of_classes == 4
    start = "Minimality could not" if not attacked else "Who knows that" if hit else "Knowing that"
    assert found.sentence.startswith(start)
    with pytest.raises(InputError, match="'x' is not a sensitive attribute"):
        minimality_attack(table, pl.DataFrame({"g": people}), 0.4, "x")


def test_shuffled_values_that_give_the_same_output() -> None:
    data = random_table(0, 6, missing=0.0)
    column = data.sensitive[0]

    def by_first(table: Any) -> Partition:
        """Two classes whose order depends on the first value; alone when the first record has the smallest code."""
        labels = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
        first = int(table.sensitive[0].codes[0])
        return Partition(1 - labels if first % 2 else labels)

    found = minimality_by_rerun(data, "illness", by_first, tries=40, seed=3)
    random, counts, same = np.random.default_rng(3), np.zeros_like(found), 0
    for _ in range(40):
        codes = random.permutation(column.codes)
        if all(
            Counter(codes[part].tolist()) == Counter(column.codes[part].tolist()) for part in (slice(3), slice(3, 6))
        ):
            same += 1
            counts[np.arange(6), codes] += 1
    assert 0 < same < 40
    assert found.tolist() == (counts / same).tolist()
    never = minimality_by_rerun(data, "illness", by_first, tries=0)
    assert np.isnan(never).all()


def test_a_constant_number_and_a_missing_one_lose_everything_together() -> None:
    from shoal.measures.bounds import check_certificate, loss_bound

    frame = pl.DataFrame({"age": [5, 5, 5, None], "b": ["x"] * 4})
    data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "b": {"role": "quasi"}})
    rules, space = data.rules(shoal.Policy((shoal.KAnonymity(2),))), data.space("ncp")
    bound = loss_bound(data.codes, space, rules)
    # Who has no age is in a class with somebody who has one: two records that lose it.
    assert bound.u.tolist() == pytest.approx([0, 0, 0, 2])
    assert bound.mean == pytest.approx(bound.total / 8)
    # What rounding could have done is left out of the bound, and nothing more is forgiven.
    assert check_certificate(data.codes, space, rules, bound.u)
    assert not check_certificate(data.codes, space, rules, bound.u * (1 + 1.5e-9))


def test_the_size_that_releases_are_asked_for_is_a_whole_number() -> None:
    one, schema = pl.DataFrame({"age": ["*", "*"]}), shoal.Schema({"age": shoal.Attribute(role="quasi")})
    with pytest.raises(shoal.ShoalError, match="a whole number"):
        shoal.attack_releases([one, one], schema, "2")  # type: ignore[arg-type]
