"""What the road does with its settings: who is asked what, in which order, and when it refuses. The search itself is replaced."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.collisions import Recoding
from shoal.errors import ConfigError, InternalError, UnsupportedError
from shoal.microdata import Microdata
from shoal.partition import Partition
from shoal.policy import Policy
from shoal.road import require_kept, require_publishable

GROUPS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
TWO = shoal.KAnonymity(2)


def people() -> Microdata:
    frame = pl.DataFrame({"age": [20, 21, 22, 40, 41, 42, 60, 61, 62], "ill": ["a", "b", "c"] * 3})
    return Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})


class Played:
    """Stands for the algorithms: says what it was asked, and gives the classes it was told to give."""

    def __init__(self, patch: pytest.MonkeyPatch, labels: Any = GROUPS, notes: dict[str, Any] | None = None) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.partition = Partition(np.array(labels, dtype=np.int32), notes=notes or {})
        patch.setattr("shoal.road.run", self.run)
        patch.setattr("shoal.road.refined", self.refined)
        patch.setattr("shoal.road.without_outliers", self.without_outliers)
        self.fewer: Partition | None = None

    def run(self, algorithm: str, data: Microdata, rules: Any, **given: Any) -> Partition:
        self.asked.append((algorithm, given))
        return self.partition

    def refined(self, data: Microdata, rules: Any, partition: Partition, **given: Any) -> Partition:
        self.asked.append(("refined", given))
        return partition

    def without_outliers(self, data: Microdata, rules: Any, partition: Partition, **given: Any) -> Partition:
        self.asked.append(("outliers", given))
        return self.fewer or partition

    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


@pytest.mark.parametrize(
    "given",
    [{"objective": "nc"}, {"recode": "general"}, {"intervals": "Text"}, {"order": "Shuffle"}, {"suppressed": "masked"}, {"refine": "quick"}],
)  # fmt: skip
def test_words_that_are_not_known_are_refused(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    with pytest.raises(ConfigError, match=next(iter(given))):
        shoal.anonymize(people(), TWO, **given)
    assert played.asked == []


def test_what_is_asked_of_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    made = shoal.anonymize(
        people(), TWO, algorithm="mondrian", objective="il", seed=7, suppress=0.4, refine="thorough", mode="relaxed"
    )
    (first, told), (second, search), (third, away) = played.asked
    assert (first, second, third) == ("mondrian", "refined", "outliers")
    assert {key: told[key] for key in ("objective", "seed", "suppress", "options")} == {"objective": "il", "seed": 7, "suppress": 0.4, "options": {"mode": "relaxed"}}  # fmt: skip
    assert {key: search[key] for key in ("objective", "seed", "effort")} == {
        "objective": "il",
        "seed": 7,
        "effort": "thorough",
    }
    assert (away["objective"], away["allowed"], away["drop"]) == ("il", 3, False)
    assert all(given["progress"] is not None for _, given in played.asked)
    assert made.secret["settings"]["objective"] == "il" and made.secret["settings"]["seed"] == 7
    assert made.evidence.passed and made.measures.classes == 3


@pytest.mark.parametrize(
    ("refine", "refined"), [(True, True), ("fast", True), (2.0, True), (0.5, False), (False, False)]
)
def test_auto_is_told_whether_a_search_follows(refine: Any, refined: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch)
    shoal.anonymize(people(), TWO, refine=refine)
    assert played.asked[0][0] == "auto" and played.asked[0][1]["options"] == {"refined": refined}
    assert ("refined" in played.names()) == bool(refine)
    plain = Played(monkeypatch)
    shoal.anonymize(people(), TWO, algorithm="mondrian", refine=refine)
    assert plain.asked[0][1]["options"] == {}


def test_who_may_be_suppressed_and_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    for suppress, names in (
        (None, ["mondrian"]),
        (0.0, ["mondrian"]),
        (0.1, ["mondrian"]),
        (0.12, ["mondrian", "outliers"]),
    ):
        played = Played(monkeypatch)
        shoal.anonymize(people(), TWO, algorithm="mondrian", refine=False, suppress=suppress)
        assert played.names() == names  # a tenth of nine records is none
    played = Played(monkeypatch)
    played.fewer = Partition(np.array([0, 0, 0, 1, 1, 1, -1, -1, -1], dtype=np.int32))
    made = shoal.anonymize(people(), TWO, algorithm="mondrian", suppress=0.4, suppressed="drop")
    # Other classes are refined again.
    assert played.names() == ["mondrian", "refined", "outliers", "refined"]
    assert played.asked[2][1]["drop"] is True
    assert (made.masked.height, made.measures.suppressed) == (6, 3)
    again = Played(monkeypatch)
    again.fewer = played.fewer
    shoal.anonymize(people(), TWO, algorithm="mondrian", suppress=0.4, refine=False)
    assert again.names() == ["mondrian", "outliers"]


def test_more_suppressed_than_allowed_is_nobodys_release(monkeypatch: pytest.MonkeyPatch) -> None:
    Played(monkeypatch, [0, 0, 0, 1, 1, 1, -1, -1, -1])
    with pytest.raises(InternalError, match="mondrian suppressed 3 records where 2 are allowed"):
        shoal.anonymize(people(), TWO, algorithm="mondrian", suppress=0.3, refine=False)
    made = shoal.anonymize(people(), TWO, algorithm="mondrian", suppress=0.34, refine=False)
    assert made.measures.suppressed == 3
    # Without a limit of its own an algorithm keeps its habits.
    assert shoal.anonymize(people(), TWO, algorithm="mondrian", refine=False).measures.suppressed == 3


def test_who_leaves_moves_the_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    close = TWO & shoal.TCloseness(0.9)
    played = Played(monkeypatch)
    with pytest.raises(UnsupportedError, match="compares classes with the whole table"):
        shoal.anonymize(people(), close, algorithm="mondrian", suppress=0.4, suppressed="drop")
    assert played.asked == []
    # Nobody can go, nobody stays away, or the policy does not mind: no objection.
    shoal.anonymize(people(), close, algorithm="mondrian", suppress=0.1, suppressed="drop", refine=False)
    shoal.anonymize(people(), close, algorithm="mondrian", suppress=0.4, refine=False)
    shoal.anonymize(people(), TWO, algorithm="mondrian", suppress=0.4, suppressed="drop", refine=False)
    assert played.names() == ["mondrian", "mondrian", "outliers", "mondrian", "outliers"]


def test_suppressed_records_that_can_be_published() -> None:
    data = people()
    none, three, one = (
        Partition(np.array(labels, dtype=np.int32)) for labels in ([0] * 9, [0] * 6 + [-1] * 3, [0] * 8 + [-1])
    )
    for policy in (TWO, TWO & shoal.TCloseness(0.9)):
        rules = data.rules(policy if isinstance(policy, Policy) else Policy((policy,)))
        for drop in (False, True):
            require_publishable(rules, none, drop=drop)
    rules = data.rules(TWO & shoal.PSensitive(2))
    require_publishable(rules, three, drop=False)
    require_publishable(rules, one, drop=True)
    with pytest.raises(UnsupportedError, match="1 records were suppressed and are too few or too alike"):
        require_publishable(rules, one, drop=False)
    close = data.rules(TWO & shoal.TCloseness(0.9))
    require_publishable(close, three, drop=False)
    with pytest.raises(UnsupportedError, match="compares classes with the whole table"):
        require_publishable(close, three, drop=True)
    require_publishable(close, replace(three, notes={"outliers": 3}), drop=True)


def test_classes_are_good_by_the_table_that_remains() -> None:
    """Half of those who stay have "a" and so has each class; where two of five have, a class of one half is unlike the rest."""
    frame = pl.DataFrame({"age": [20, 21, 40, 41, 60, 61], "ill": ["a", "b", "a", "b", "b", "b"]})
    data = Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    policy = Policy((shoal.TCloseness(0.05, "ill", distance="equal"),))
    partition = Partition(np.array([0, 0, 1, 1, -1, -1], dtype=np.int32))
    whole = Partition(np.array([0, 0, 0, 0, 0, 0], dtype=np.int32))
    require_kept(data, partition, policy, Recoding("generalize", "text", drop=False))
    require_kept(data, partition, policy, Recoding("generalize", "text", drop=True))
    require_kept(data, whole, policy, Recoding("generalize", "text", drop=True))
    uneven = Partition(np.array([0, -1, 1, 0, 1, 1], dtype=np.int32))
    with pytest.raises(UnsupportedError, match="Without the suppressed records the table is another one"):
        require_kept(data, uneven, policy, Recoding("generalize", "text", drop=True))


def test_single_models_and_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[float] = []
    Played(monkeypatch)
    made = shoal.anonymize(people(), TWO, algorithm="mondrian", order="keep", progress=shares.append)
    assert made.policy == Policy((TWO,))
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert made.masked["age"].to_list() == ["[20, 22]"] * 3 + ["[40, 42]"] * 3 + ["[60, 62]"] * 3
    ends = shoal.anonymize(people(), TWO, algorithm="mondrian", order="keep", intervals="columns").masked
    assert ends["age_min"].to_list() == [20] * 3 + [40] * 3 + [60] * 3
    mean = shoal.anonymize(people(), TWO, algorithm="mondrian", order="keep", recode="microaggregate").masked
    assert mean["age"].to_list() == [21] * 3 + [41] * 3 + [61] * 3
    first, second = (
        shoal.anonymize(people(), TWO, algorithm="mondrian", seed=seed).masked["ill"].to_list() for seed in (1, 2)
    )
    assert first != second


def test_persons_are_counted_in_the_evidence_whether_or_not_a_token_is_published() -> None:
    visits = pl.DataFrame({"pid": [i // 2 for i in range(24)], "age": [20 + i // 2 for i in range(24)]})
    for more in ({}, {"publish": "token"}):
        schema = {"pid": {"role": "person", **more}, "age": {"role": "quasi"}}
        release = shoal.anonymize(visits, {"k": 3}, schema=schema, algorithm="mondrian", refine=False)
        assert (release.evidence.persons, release.evidence.smallest) == (12, 3)
