"""Attacks: golden values, the examples of docs/measures.md, naive twins on random tables, and releases side by side."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.measures.masking import masked_of, partition_of
from tests.reference import measures as naive
from tests.tables import UNBALANCED, random_table

from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError
from shoal.measures.attacks import (
    background_knowledge,
    homogeneity,
    linking,
    posteriors,
    run_attacks,
    similarity,
    skewness,
    vulnerable_tables,
)
from shoal.measures.minimality import minimality, minimality_attack, minimality_by_rerun
from shoal.measures.releases import Releases, attack_releases, difference, intersection, tracing
from shoal.measures.seen import MaskedTable
from shoal.partition import Partition
from shoal.schema import Schema
from shoal.verifier import audit

ILL: Schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}})


def table(classes: list[list[Any]], schema: Schema = ILL) -> MaskedTable:
    """Class number i publishes g = "ci"."""
    rows = [(f"c{i}", value) for i, members in enumerate(classes) for value in members]
    return MaskedTable.of(pl.DataFrame(rows, schema=["g", "ill"], orient="row"), schema)


def test_g23_table_1_of_001() -> None:
    rows = [
        ("Black", 1965, "m", "0214*", "Short breath"), ("Black", 1965, "m", "0214*", "chest pain"),
        ("Black", 1965, "f", "0213*", "hypertension"), ("Black", 1965, "f", "0213*", "hypertension"),
        ("Black", 1964, "f", "0213*", "obesity"), ("Black", 1964, "f", "0213*", "chest pain"),
        ("White", 1964, "m", "0213*", "chest pain"), ("White", 1964, "m", "0213*", "obesity"),
        ("White", 1964, "m", "0213*", "Short breath"), ("White", 1967, "m", "0213*", "chest pain"),
        ("White", 1967, "m", "0213*", "chest pain"),
    ]  # fmt: skip
    names = ["race", "birth", "gender", "zip", "problem"]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    schema = read_schema({name: {"role": "sensitive" if name == "problem" else "quasi"} for name in names})
    strengths = {(s.model, *s.settings.values()): s.strongest for s in audit(frame, schema)}
    assert strengths[("k_anonymity",)] == 2
    assert strengths[("p_sensitive",)] == 1
    masked = MaskedTable.of(frame, schema)
    found = homogeneity(masked, masked.histograms[0])
    assert (len(found.classes), found.of_classes, found.exposed) == (2, 5, 4)
    assert "In 2 of 5 classes everybody has the same 'problem'" in found.sentence


def test_homogeneity_takes_missing_values_for_none() -> None:
    masked = table([["flu", "flu", None], [None, None], ["flu", "cold"]])
    found = homogeneity(masked, masked.histograms[0])
    assert (found.classes, found.exposed) == ((0,), 2)
    safe = table([["flu", "cold"], ["flu", "cold", "cold"]])
    nobody = homogeneity(safe, safe.histograms[0])
    assert (nobody.exposed, nobody.worst) == (0, pytest.approx(2 / 3))


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=8), min_size=1, max_size=6), st.integers(0, 3))
def test_background_knowledge_and_skewness_equal_the_naive_twins(classes: list[list[str]], strength: int) -> None:
    masked = table(classes)
    histogram = masked.histograms[0]
    expected = [float(naive.posterior(members, strength)) for members in classes]
    assert posteriors(histogram, strength).tolist() == pytest.approx(expected)
    everybody = [value for members in classes for value in members]
    found = skewness(masked, histogram, gain=0.5)
    by_class = [naive.gains(members, everybody) for members in classes]
    assert found.worst == pytest.approx(float(max(max(gains.values()) for gains in by_class)))
    exposed = sum(
        sum(gains[value] > Fraction(1, 2) for value in members)
        for gains, members in zip(by_class, classes, strict=True)
    )
    assert found.exposed == exposed


def test_background_knowledge_of_growing_strength() -> None:
    masked = table([["a"] * 4 + ["b"] * 3 + ["c"] * 2 + ["d"], list("efghi")])
    found = background_knowledge(masked, masked.histograms[0], strength=1)
    assert found.details["posterior"] == pytest.approx({"0": 0.4, "1": 4 / 7, "2": 4 / 5})
    assert found.exposed == 0
    assert background_knowledge(masked, masked.histograms[0], strength=3).exposed == 10


def test_ruling_out_one_of_two_values_is_no_alarm() -> None:
    """Who rules out "yes" knows "no" without any table; a class with one value tells, and that can be changed."""
    masked = table([["yes", "no", "no"], ["no", "yes"]])
    found = background_knowledge(masked, masked.histograms[0], strength=1)
    assert (found.exposed, found.way_out, found.worst) == (0, "", 1.0)
    assert "with or without this table" in found.sentence
    alike = table([["yes", "no", "no"], ["no", "no"]])
    told = background_knowledge(alike, alike.histograms[0], strength=1)
    assert (told.exposed, told.classes) == (2, (1,))
    assert told.way_out == 'Ask for p_sensitive = { p = 2, attribute = "ill" } in [policy].'
    # With a third value in the table there is something to hide behind.
    third = table([["yes", "no", "no"], ["no", "yes", "perhaps"]])
    assert background_knowledge(third, third.histograms[0], strength=1).exposed == 3
    one = table([["no", "no"], ["no", "no"]])
    assert background_knowledge(one, one.histograms[0], strength=1).exposed == 0
    assert "drop = true" in homogeneity(one, one.histograms[0]).way_out


def test_amounts_of_one_person_each_are_reported_as_such() -> None:
    schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    amounts = [[100.5 + 7 * i for i in range(15)], [700.25 + 3 * i for i in range(15)]]
    found = skewness(masked := table(amounts, schema), masked.histograms[0])
    assert (found.exposed, found.worst, found.details["own"]) == (0, 0.0, 30)
    assert "hardly ever equal" in found.sentence
    amounts[1][:6] = [700.25] * 6
    some = skewness(masked := table(amounts, schema), masked.histograms[0])
    # Six share an amount that the class makes twice as probable as the table: not more than twice.
    assert (some.exposed, some.details["value"], some.details["own"]) == (0, "700.25", 24)
    twice = skewness(masked := table([*amounts, [5.0 + i for i in range(15)]], schema), masked.histograms[0])
    assert (twice.exposed, twice.details["own"]) == (6, 39)
    assert "beta_likeness" in twice.way_out
    # Few numbers are values like any other.
    few = skewness(masked := table([[1, 2, 3, 4], [5, 6, 7, 8]], schema), masked.histograms[0], gain=0.5)
    assert (few.exposed, few.details["own"]) == (8, 0)


DISEASES = ["HIV", "cancer", "phthisis", "hepatitis", "obesity", "asthma", "flu", "indigestion"]
CATEGORIES = {f"S{i}": DISEASES[2 * i : 2 * i + 2] for i in range(4)}


def test_similarity_by_category() -> None:
    schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive", "categories": CATEGORIES}})
    masked = table([["HIV", "cancer"], ["HIV", "flu"], ["flu", "flu"]], schema)
    found = similarity(masked, masked.histograms[0])
    assert found is not None
    assert (found.classes, found.exposed) == ((0, 2), 4)
    assert vulnerable_tables([masked.masked, table([["HIV", "flu"]], schema).masked], schema, "ill") == (1, 2)
    with pytest.raises(InputError, match="'il' is not a sensitive attribute; did you mean 'ill'"):
        vulnerable_tables([masked.masked], schema, "il")


def test_similarity_below_a_protected_node() -> None:
    rows = [["colon", "cancer", "*"], ["breast", "cancer", "*"], ["flu", "*"], ["cold", "*"]]
    schema = read_schema(
        {"g": {"role": "quasi"}, "ill": {"role": "sensitive", "taxonomy": {"rows": rows}, "protect": ["cancer"]}}
    )
    masked = table([["colon", "breast"], ["flu", "cold"], ["colon", "flu"]], schema)
    found = similarity(masked, masked.histograms[0])
    assert found is not None and found.classes == (0,)


def test_similarity_of_numbers() -> None:
    schema = read_schema({"g": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    masked = table([[10, 11, 12], [0, 100], [50, 50, 50, 50, 80]], schema)
    found = similarity(masked, masked.histograms[0])
    assert found is not None and found.classes == (0,)
    narrow = similarity(masked, masked.histograms[0], 0.01)
    assert narrow is not None and narrow.classes == ()
    varied = similarity(masked, masked.histograms[0], 0.0, variance_ratio=0.5)
    assert varied is not None and varied.classes == (0, 2)
    words = table([["flu", "cold"]])
    assert similarity(words, words.histograms[0]) is None


def test_skewness_names_the_class_and_the_value() -> None:
    masked = table([["flu"] * 8 + ["HIV"], ["HIV", "HIV", "flu"]])
    found = skewness(masked, masked.histograms[0])
    # 2/3 in the class against 3/12 in the table.
    assert found.details["gain"] == pytest.approx((2 / 3) / (3 / 12) - 1)
    assert found.details["additive_gain"] == pytest.approx(2 / 3 - 3 / 12)
    assert (found.exposed, found.classes, found.details["value"]) == (2, (1,), "HIV")
    assert "(g = c1)" in found.sentence


def test_run_attacks_covers_every_sensitive_attribute() -> None:
    data = random_table(1, 60, sensitive=2)
    masked, _, _ = masked_of(data, partition_of(1, 60, 8))
    found = run_attacks(MaskedTable.of(masked, data.schema))
    assert {(e.attack, e.attribute) for e in found} >= {("homogeneity", "income"), ("similarity", "illness")}
    assert all(0 <= e.share <= 1 and e.sentence.endswith(".") for e in found)
    assert all(set(e.to_dict()) >= {"attack", "exposed", "share", "sentence"} for e in found)


def test_linking_of_003() -> None:
    """Anna, 25, 22370 is found with certainty, and with one half after 2-anonymization."""
    schema = read_schema(
        {"age": {"role": "quasi"}, "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [2, 0]}},
         "ill": {"role": "sensitive"}}
    )  # fmt: skip
    anna = pl.DataFrame({"name": ["Anna"], "age": [25], "zip": ["22370"]})
    raw = pl.DataFrame({"age": [25, 35], "zip": ["22370", "22399"], "ill": ["HIV", "flu"]})
    found = linking(MaskedTable.of(raw, schema), anna)
    assert (found.candidates.tolist(), found.posterior["ill"].tolist(), found.value["ill"]) == ([1], [1.0], ["HIV"])
    assert found.exposure.exposed == 1
    masked = raw.with_columns(age=pl.lit("[25, 35]"), zip=pl.lit("22***"))
    hidden = linking(MaskedTable.of(masked, schema), anna)
    assert (hidden.candidates.tolist(), hidden.posterior["ill"].tolist()) == ([2], [0.5])
    assert hidden.exposure.exposed == 0


def test_who_fits_one_record_only_is_exposed_whatever_is_known_of_it() -> None:
    """Ann's value is missing, so nothing is certain about it; but it is her record, with all that stands in it."""
    schema = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    ages = ["[20, 29]", "[30, 39]", "[30, 39]", "[40, 49]", "[40, 49]"]
    masked = pl.DataFrame({"age": ages, "ill": [None, "flu", "cold", "flu", "flu"]})
    persons = pl.DataFrame({"age": [25, 31, 44, 77, None]})
    found = linking(MaskedTable.of(masked, schema), persons)
    assert found.candidates.tolist() == [1, 2, 2, 0, 5]
    assert found.value["ill"] == [None, "flu", "flu", None, "flu"]
    assert found.posterior["ill"].tolist() == [0, 0.5, 1, 0, 3 / 5]
    told = found.exposure
    assert (told.exposed, told.total, told.classes, told.of_classes, told.worst) == (2, 5, (0, 2), 3, 1.0)
    assert told.details == {
        "linked": 4,
        "unique": 1,
        "certain": 1,
        "expected_reidentified": pytest.approx(1 + 1 / 2 + 1 / 2 + 1 / 5),
        "fewest_candidates": 1,
        "median_candidates": 2.0,
        "columns": ["age"],
    }
    assert "4 fit some masked record, 1 fit exactly one, and for 1 a sensitive value is certain" in told.sentence
    # From which probability on a value counts as known is the reader's to say.
    assert linking(MaskedTable.of(masked, schema), persons, certainty=0.6).exposure.details["certain"] == 2
    assert linking(MaskedTable.of(masked, schema), persons, certainty=0.5).exposure.exposed == 4


def test_linking_without_secrets_or_without_anybody() -> None:
    schema = read_schema({"age": {"role": "quasi"}})
    masked = MaskedTable.of(pl.DataFrame({"age": ["[20, 29]"] * 4 + ["[30, 39]"] * 2}), schema)
    found = linking(masked, pl.DataFrame({"age": [22, 33]})).exposure
    assert (found.exposed, found.worst, found.classes) == (0, 1 / 2, ())
    nobody = linking(masked, pl.DataFrame({"age": [99]})).exposure
    assert (nobody.exposed, nobody.worst, nobody.details["fewest_candidates"]) == (0, 0.0, 0)
    assert nobody.details["median_candidates"] == nobody.details["expected_reidentified"] == 0
    with pytest.raises(InputError, match="The external table has no persons"):
        linking(masked, pl.DataFrame({"age": []}, schema={"age": pl.Int64}))


@pytest.mark.parametrize("seed", range(4))
def test_linking_equals_the_naive_twin(seed: int) -> None:
    data = random_table(seed, 30)
    masked, _, _ = masked_of(data, partition_of(seed, 30, 7, suppressed=seed % 2))
    external = random_table(seed + 100, 25).frame.select("age", "job", "zip", "colour")
    found = linking(MaskedTable.of(masked, data.schema), external)
    rows = masked.select(external.columns).rows()
    jobs = {row[0]: row for row in UNBALANCED}
    zips = {z: [z, z[:2] + "*", z[:1] + "**", "***"] for z in external["zip"].unique()}
    for i, person in enumerate(external.rows()):
        fits = naive.candidates(rows, person, [None, jobs, zips, None])
        assert found.candidates[i] == len(fits), (person, i)
        values = [value for value in masked["illness"][fits] if value is not None] if fits else []
        best = max((values.count(v) for v in values), default=0)
        assert found.posterior["illness"][i] == pytest.approx(best / max(1, len(fits)))
        assert (found.value["illness"][i] is None) == (not values)


def test_everybody_is_among_their_own_candidates() -> None:
    data = random_table(3, 40, missing=0.0)
    masked, classes, _ = masked_of(data, partition_of(3, 40, 6))
    found = linking(MaskedTable.of(masked, data.schema), data.frame.select(data.quasi))
    assert (found.candidates >= classes.sizes[classes.labels]).all()


def test_linking_needs_something_in_common() -> None:
    masked = table([["flu", "cold"]])
    with pytest.raises(InputError, match="none of the quasi-identifiers g"):
        linking(masked, pl.DataFrame({"G": ["c0"]}))
    auto = read_schema({"g": {"role": "quasi", "taxonomy": "auto"}, "ill": {"role": "sensitive"}})
    grouped = MaskedTable.of(pl.DataFrame({"g": ["{a, b, +5}"] * 2, "ill": ["flu", "cold"]}), auto)
    with pytest.raises(InputError, match="automatic taxonomy"):
        linking(grouped, pl.DataFrame({"g": ["a"]}))


@pytest.mark.parametrize(
    ("sizes", "posterior"),
    [((2, 5), (1.0, 0.0)), ((2, 4), (1.0, 0.0)), ((2, 2), (0.5, 0.5)), ((2, 3), (0.25, 0.5))],
)
def test_g39_minimality(sizes: tuple[int, ...], posterior: tuple[float, ...]) -> None:
    found = minimality(sizes, 2)
    assert found.posterior == posterior
    assert found.naive == pytest.approx(2 / sum(sizes))
    worlds = naive.minimality(sizes, 2, Fraction(1, 2))
    assert found.consistent == pytest.approx(worlds[1] / worlds[2])


@settings(max_examples=40)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data(), st.sampled_from([0.25, 0.5, 0.75, 1.0]))
def test_minimality_equals_the_worlds_one_by_one(sizes: list[int], data: st.DataObject, share: float) -> None:
    occurrences = data.draw(st.integers(0, sum(sizes)))
    found = minimality(sizes, occurrences, share)
    expected, remaining, worlds = naive.minimality(sizes, occurrences, Fraction(share))
    assert found.applies == (remaining > 0)
    assert found.consistent == pytest.approx(remaining / worlds)
    assert found.posterior == pytest.approx(
        [float(p) for p in expected] if expected else [occurrences / sum(sizes)] * len(sizes)
    )


def test_minimality_refuses_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="5 occurrences do not fit groups of sizes"):
        minimality([2, 2], 5)


def test_minimality_on_a_masked_table() -> None:
    """Two records with q1 and five with q2 were merged because both q1 had the value: everybody knows it now."""
    masked = MaskedTable.of(pl.DataFrame({"g": ["{q1, q2}"] * 7, "ill": ["HIV"] * 2 + ["a", "b", "c", "d", "e"]}), ILL)
    persons = pl.DataFrame({"g": ["q1"] * 2 + ["q2"] * 5})
    found = minimality_attack(masked, persons, 0.5)
    assert (found.exposed, found.worst) == (2, 1.0)
    unknown = minimality_attack(masked, persons[:5], 0.5)
    assert (unknown.exposed, unknown.details["attacked_classes"]) == (0, 0)


def test_minimality_by_running_again() -> None:
    """An algorithm that merges all as soon as one group has one value only: then the values are not independent."""
    data = random_table(0, 6, missing=0.0)

    def by_age_if_diverse(table: Any) -> Partition:
        labels = (np.arange(table.n) >= 2).astype(np.int32)
        codes = table.sensitive[0].codes
        diverse = all(len(set(codes[labels == c].tolist())) > 1 for c in (0, 1))
        return Partition(labels if diverse else np.zeros(table.n, dtype=np.int32))

    found = minimality_by_rerun(data, "illness", by_age_if_diverse, tries=60)
    assert found.shape == (6, len(data.sensitive[0].labels))
    assert np.isnan(found).all() or found.sum(axis=1) == pytest.approx(np.ones(6))
    with pytest.raises(InputError, match="'job'"):
        minimality_by_rerun(data, "job", by_age_if_diverse)


# --- releases side by side ------------------------------------------------------------------------------------------

AGE = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})


def release(*classes: tuple[str, list[str | None]]) -> pl.DataFrame:
    rows = [(text, value) for text, values in classes for value in values]
    return pl.DataFrame(rows, schema=["age", "ill"], orient="row")


def test_intersection_of_two_releases() -> None:
    """{dyspepsia, bronchitis} ∩ {dyspepsia, gastritis} = {dyspepsia}."""
    first = release(("[20, 29]", ["dyspepsia", "bronchitis"]), ("[30, 39]", ["flu", "cold"]))
    second = release(("[25, 34]", ["dyspepsia", "gastritis"]), ("[35, 60]", ["flu", "cold"]))
    persons = pl.DataFrame({"age": [27, 38, 22]})
    found = intersection(Releases.of([first, second], AGE, persons), "ill")
    # 22 is in the first release only: two values remain.
    assert found.remaining.tolist() == [1, 2, 2]
    assert found.guess.tolist() == [1.0, 0.5, 0.5]
    assert (found.exposure.exposed, found.exposure.total) == (1, 3)
    assert found.exposure.details["mean_exposure"] == pytest.approx(2 / 3)


def test_intersection_without_persons_knows_the_class_only() -> None:
    first = release(("[20, 29]", ["dyspepsia", "bronchitis"]), ("[30, 39]", ["flu", "cold"]))
    second = release(("[22, 27]", ["dyspepsia", "gastritis"]), ("[28, 60]", ["flu", "cold"]))
    found = intersection(Releases.of([first, second], AGE), "ill")
    assert found.remaining.tolist() == [1, 2]
    assert (found.exposure.exposed, found.exposure.classes) == (2, (0,))


def test_one_insertion_is_read_off() -> None:
    """A planted leak: one record joins a class, and its value is the difference."""
    before = release(("[20, 29]", ["flu", "cold"]), ("[30, 39]", ["flu", "ulcer"]))
    after = release(("[20, 31]", ["cold", "flu", "HIV"]), ("[30, 39]", ["ulcer", "flu"]))
    changes, exposure = difference(Releases.of([before, after], AGE), k=2)
    assert [(c.older, c.newer, c.added, c.removed) for c in changes] == [(0, 0, (("HIV",),), ()), (1, 1, (), ())]
    assert (exposure.exposed, exposure.classes) == (1, (0,))
    assert exposure.details["fewest_changed_records"] == 1
    assert "who joined the class (age = [20, 31]) has HIV" in exposure.sentence


def test_enough_diverse_newcomers_are_safe_and_equal_ones_are_not() -> None:
    before = release(("[20, 29]", ["flu", "cold"]))
    safe = release(("[20, 29]", ["flu", "cold", "ulcer", "HIV"]))
    alike = release(("[20, 29]", ["flu", "cold", "HIV", "HIV"]))
    assert difference(Releases.of([before, safe], AGE), k=2)[1].exposed == 0
    assert difference(Releases.of([before, alike], AGE), k=2)[1].exposed == 2
    gone = difference(Releases.of([safe, release(("[20, 29]", ["flu", "cold", "ulcer"]))], AGE), k=2)[1]
    assert (gone.exposed, "who left" in gone.sentence) == (1, True)


def test_tracing_counts_the_persons_two_classes_have_in_common() -> None:
    first = release(("[20, 29]", ["a", "b", "c"]), ("[30, 39]", ["a", "b", "c"]))
    second = release(("[20, 24]", ["a", "b"]), ("[25, 39]", ["a", "b", "c", "d"]))
    persons = pl.DataFrame({"age": [21, 23, 27, 33, 35, 38]})
    effective, exposure = tracing(Releases.of([first, second], AGE, persons), k=2)
    assert effective.tolist() == [2, 2, 1, 3, 3, 3]
    assert (exposure.exposed, exposure.details["smallest_effective_k"]) == (1, 1)
    with pytest.raises(InputError, match="give an external table"):
        tracing(Releases.of([first, second], AGE), k=2)


def test_tracing_equals_a_loop_over_pairs() -> None:
    random = np.random.default_rng(8)
    cuts = [[0, 9, 17, 26, 40], [0, 5, 14, 22, 31, 40]]
    releases = [release(*((f"[{a}, {b - 1}]", ["x", "y"]) for a, b in pairwise(cut))) for cut in cuts]
    ages = random.integers(0, 40, 50)
    effective, _ = tracing(Releases.of(releases, AGE, pl.DataFrame({"age": ages})), k=3)
    cells = [tuple(int(np.searchsorted(cut, age, side="right")) for cut in cuts) for age in ages]
    assert effective.tolist() == [cells.count(cell) for cell in cells]


def test_the_same_release_twice_tells_nothing_new() -> None:
    data = random_table(5, 60, missing=0.0)
    masked, classes, _ = masked_of(data, partition_of(5, 60, 9))
    k = int(classes.sizes.min())
    assert k > 1
    persons = data.frame.select(data.quasi)
    found = attack_releases([masked, masked], data.schema, k, persons)
    alone = linking(MaskedTable.of(masked, data.schema), persons)
    assert {e.attack: e.exposed for e in found} == {"intersection": 0, "difference": 0, "tracing": 0}
    read = Releases.of([masked, masked], data.schema, persons)
    assert (tracing(read, k)[0] >= classes.sizes[classes.labels]).all()
    expected = [top / known for top, known in known_shares(masked, data, alone)]
    assert intersection(read, "illness").guess.tolist() == pytest.approx(expected)


def known_shares(masked: pl.DataFrame, data: Any, alone: Any) -> list[tuple[float, float]]:
    """Per person, records with the most frequent value and records with any known value among the candidates."""
    names = data.quasi
    rows, people = masked.select(names).rows(), data.frame.select(names).rows()
    zips = {z: [z, z[:2] + "*", z[:1] + "**", "***"] for z in data.frame["zip"].unique()}
    paths = [
        {row[0]: row for row in UNBALANCED} if name == "job" else zips if name == "zip" else None for name in names
    ]
    found = []
    for i, person in enumerate(people):
        fits = naive.candidates(rows, person, paths)
        assert len(fits) == alone.candidates[i]
        values = [value for value in masked["illness"][fits] if value is not None]
        found.append((max(values.count(v) for v in values), len(values)))
    return found


def test_all_attacks_across_releases() -> None:
    first = release(("[20, 29]", ["a", "b"]), ("[30, 39]", ["a", "c"]))
    second = release(("[20, 29]", ["a", "b", "c"]), ("[30, 39]", ["a", "c"]))
    found = attack_releases([first, second], AGE, 2, pl.DataFrame({"age": [25]}))
    assert [e.attack for e in found] == ["intersection", "difference", "tracing"]
    assert [e.attack for e in attack_releases([first, second], AGE, 2)] == ["intersection", "difference"]
    with pytest.raises(InputError, match="two releases or more"):
        attack_releases([first], AGE, 2)
