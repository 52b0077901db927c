"""Classes that publish the same values: joined where the policy allows it, told apart where it does not, never untested."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.collisions import Recoding, _joined_by_state, published_classes
from shoal.errors import ShoalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.release import mask
from shoal.verifier import verify

TREE = [["flu", "lung", "*"], ["asthma", "lung", "*"], ["ulcer", "stomach", "*"], ["HIV", "blood", "*"]]
GUARDED = Policy((shoal.Personalized(0.5, "ill", guard={"HIV": "blood"}),))


def table(quasi: dict[str, list[Any]], ill: list[str], **attributes: Any) -> Microdata:
    schema: dict[str, Any] = {name: {"role": "quasi", **attributes.get(name, {})} for name in quasi}
    schema["ill"] = {"role": "sensitive", "taxonomy": {"rows": TREE}}
    return Microdata.from_frame(pl.DataFrame({**quasi, "ill": ill}), schema)


def published(
    data: Microdata, labels: list[int], policy: Policy, how: Recoding | None = None
) -> tuple[Partition, pl.DataFrame]:
    """What comes of a partition, verified."""
    how = how or Recoding()
    partition = Partition(np.array(labels, dtype=np.int32))
    made, states = published_classes(data, partition, data.rules(policy), data.space("ncp"), how)
    masked, _ = mask(
        data,
        made,
        states,
        recode=how.recode,
        intervals=how.intervals,
        drop_suppressed=how.drop,
        shuffle_seed=None,
    )
    evidence = verify(masked, policy, data.schema)
    assert evidence.passed, evidence.violations[0]
    return made, masked


def test_classes_that_are_good_together_are_joined() -> None:
    data = table({"age": [20, 30, 20, 30, 20, 30, 20, 30]}, ["flu", "ulcer"] * 4)
    made, masked = published(data, [0, 0, 0, 0, 1, 1, 1, 1], GUARDED)
    assert made.classes == 1
    assert set(masked["age"]) == {"[20, 30]"}


def test_classes_that_publish_anything_are_one_class() -> None:
    """30 or nothing and 40 or nothing are both published as a star, so nobody can tell the two classes apart."""
    frame = pl.DataFrame({"age": [30, None, 40, None, 20, 25], "ill": ["flu", "ulcer"] * 3})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    both = Policy((shoal.KAnonymity(2),))
    made, masked = published(data, [0, 0, 1, 1, 2, 2], both)
    assert masked["age"].to_list() == ["*"] * 4 + ["[20, 25]"] * 2
    assert made.labels.tolist() == [0, 0, 0, 0, 1, 1]
    # Missing alone is another thing than anything, and so is what has one value.
    made, masked = published(data, [2, 0, 1, 0, 1, 2], Policy((shoal.KAnonymity(1),)))
    assert masked["age"].to_list() == ["[25, 30]", None, "[20, 40]", None, "[20, 40]", "[25, 30]"]
    assert made.labels.tolist() == [2, 0, 1, 0, 1, 2]


def test_two_ends_have_no_room_for_a_missing_value() -> None:
    """Anything and the whole range have the same ends, so that in columns they are one class, and as text two."""
    frame = pl.DataFrame({"age": [20, 40, 20, None], "ill": ["flu", "ulcer"] * 2})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    two = Policy((shoal.KAnonymity(2),))
    made, masked = published(data, [0, 0, 1, 1], two, Recoding(intervals="columns"))
    assert masked["age_min"].to_list() == [20] * 4 and masked["age_max"].to_list() == [40] * 4
    assert made.labels.tolist() == [0, 0, 0, 0]
    made, masked = published(data, [0, 0, 1, 1], two)
    assert masked["age"].to_list() == ["[20, 40]"] * 2 + ["*"] * 2
    assert made.labels.tolist() == [0, 0, 1, 1]


def test_nodes_are_compared_and_not_the_leaves_below_them() -> None:
    rows = {"zip": {"taxonomy": {"rows": [["a", "abc", "*"], ["b", "abc", "*"], ["c", "abc", "*"], ["d", "*"]]}}}
    data = table({"zip": ["a", "b", "b", "c", "d", "d"]}, ["flu", "ulcer"] * 3, **rows)
    made, masked = published(data, [1, 1, 2, 2, 0, 0], Policy((shoal.KAnonymity(2),)))
    assert masked["zip"].to_list() == ["abc"] * 4 + ["d"] * 2
    # Joined classes keep the order of the first of them.
    assert made.labels.tolist() == [1, 1, 1, 1, 0, 0]


def unequal() -> tuple[list[str], list[int], Policy]:
    """Two classes, each good, and not together: a record guards `lung`, and the others of the other class are all below it."""
    ill = ["flu", "ulcer", "HIV", "HIV", "asthma", "asthma", "asthma", "asthma"]
    return ill, [0, 0, 0, 0, 1, 1, 1, 1], Policy((shoal.Personalized(0.4, "ill", guard={"flu": "lung"}),))


def test_classes_that_are_not_good_together_are_told_apart() -> None:
    ill, labels, policy = unequal()
    data = table({"age": [20, 30] * 4 + [40], "sex": ["f"] * 9}, [*ill, "ulcer"])
    made, masked = published(data, [*labels, 0], policy)
    assert made.classes == 2
    ages = [str(text) for text in masked["age"]]
    assert len(set(ages)) == 2
    assert all(text in ("[20, 30]", "[20, 40]", "40") for text in ages)


@pytest.mark.parametrize("intervals", ["text", "columns", "midpoint"])
def test_the_cheapest_region_that_nobody_publishes_is_taken(intervals: Any) -> None:
    ill, labels, policy = unequal()
    data = table({"age": [20, 30] * 4 + [31, 90, 31, 90]}, [*ill, *["ulcer"] * 4])
    made, masked = published(data, [*labels, 2, 2, 2, 2], policy, Recoding(intervals=intervals))
    assert made.classes == 3
    if intervals == "text":
        assert set(masked["age"]) == {"[20, 30]", "[20, 31]", "[31, 90]"}


def test_trees_and_sets_are_widened_too() -> None:
    ill, labels, policy = unequal()
    rows = {"zip": {"taxonomy": {"rows": [["a", "ab", "*"], ["b", "ab", "*"], ["c", "cd", "*"], ["d", "cd", "*"]]}}}
    tree = table({"zip": ["a", "b"] * 4 + ["c", "c"]}, [*ill, "ulcer", "ulcer"], **rows)
    _, masked = published(tree, [*labels, 2, 2], policy)
    assert set(masked["zip"]) == {"ab", "*", "c"}
    sets = table({"job": ["a", "b"] * 4 + ["c", "c"]}, [*ill, "ulcer", "ulcer"])
    _, masked = published(sets, [*labels, 2, 2], policy)
    assert set(masked["job"]) == {"{a, b}", "{a, b, c}", "c"}


def test_what_cannot_be_told_apart_is_joined_with_a_class_nearby_or_refused() -> None:
    ill, labels, policy = unequal()
    alone = table({"sex": ["f"] * 8}, ill)
    with pytest.raises(UnsupportedError, match="publish the same values"):
        published(alone, labels, policy)
    # Averages cannot be widened; with enough others the share below the guard is small again.
    data = table({"age": [20, 30] * 4 + [90] * 10}, [*ill, *["ulcer"] * 10])
    made, masked = published(data, [*labels, *[2] * 10], policy, Recoding(recode="microaggregate"))
    assert made.classes == 1
    assert len(set(masked["age"])) == 1


def test_a_class_that_looks_suppressed_is_tested_with_the_suppressed() -> None:
    ill, labels, policy = unequal()
    rows = {"zip": {"taxonomy": {"rows": [["a", "*"], ["b", "*"]]}}}
    data = table({"zip": ["a", "b"] * 4}, ill, **rows)
    away = [-1 if label else 0 for label in labels]
    with pytest.raises(UnsupportedError, match="suppressed"):
        published(data, away, policy)
    _, masked = published(data, away, policy, Recoding(drop=True))
    assert masked.height == 4


def test_spellings_that_are_read_as_one_are_tested_as_one() -> None:
    ill, labels, policy = unequal()
    # The root of the prefixes is ***, suppressed records are *: both mean anything.
    data = table({"zip": ["123", "456"] * 4}, ill, zip={"kind": "category", "taxonomy": {"prefix": [2, 0]}})
    with pytest.raises(UnsupportedError, match="suppressed"):
        published(data, [-1 if label else 0 for label in labels], policy)


POLICIES = [
    Policy((shoal.KAnonymity(2), shoal.KPQR(2, 0.3, 0.7, "ill", scope="literal"))),
    Policy((shoal.KAnonymity(2), shoal.KPQR(2, 0.3, 0.5, "ill"))),
    Policy((shoal.KAnonymity(2), shoal.Personalized(0.5, "ill", guard={"flu": "lung", "HIV": "blood"}))),
]
RECODINGS: list[dict[str, Any]] = [
    {},
    {"intervals": "midpoint"},
    {"intervals": "columns"},
    {"recode": "microaggregate"},
    {"recode": "suppress"},
    {"suppressed": "drop"},
]


@pytest.mark.parametrize("algorithm", ["k_member", "greedy_pk", "kpqr", "mdav"])
def test_no_internal_error_on_small_domains(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values make many classes look alike: released or refused in a sentence, whatever the recoding."""
    changed = 0

    def watched(data: Microdata, partition: Partition, rules: Any, space: Any, how: Recoding) -> Any:
        nonlocal changed
        found = published_classes(data, partition, rules, space, how)
        careless, _ = _joined_by_state(data, partition, space, Recoding())
        changed += found[0].classes != careless.classes
        return found

    monkeypatch.setattr("shoal.road.published_classes", watched)
    released = 0
    for seed in range(12):
        random = np.random.default_rng(seed)
        n = int(random.integers(20, 120))
        quasi = {
            "age": (20 + 5 * random.integers(0, 4, n)).tolist(),
            "zip": [f"{x}" for x in random.integers(10, 14, n)],
        }
        ill = [TREE[i][0] for i in random.choice(4, n, p=[0.45, 0.3, 0.15, 0.1])]
        data = table(quasi, ill, zip={"kind": "category", "taxonomy": {"prefix": [1, 0]}})
        for position, policy in enumerate(POLICIES):
            how = RECODINGS[(seed + position) % len(RECODINGS)]
            try:
                made = shoal.anonymize(data, policy, algorithm=algorithm, refine=False, seed=seed, **how)
            except ShoalError:
                continue
            released += made.verify().passed
    assert released > 10
    assert changed or algorithm == "mdav", "nothing was put to the test"
