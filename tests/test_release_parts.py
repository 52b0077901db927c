"""Parts of a release: numbers for people with several rows, sizes that are refused, and regions that are joined and widened."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from shoal.collisions import _steps, _union
from shoal.configuration import read_schema
from shoal.errors import UnsupportedError
from shoal.microdata import Microdata
from shoal.order import tokens
from shoal.partition import Partition
from shoal.release import mask, require_size
from shoal.space import members_of
from shoal.states import class_states

ROWS = [["a", "x", "*"], ["b", "x", "*"], ["c", "*"]]


def test_tokens_tell_which_rows_belong_together_and_nothing_else() -> None:
    owner = np.array([7, 3, 7, 9, 3, 5], dtype=np.int32)
    key = np.array([40, 10, 30, 20, 10, 20])
    found = tokens(key, owner, seed=4)
    by_owner = {int(one): set(found[owner == one].tolist()) for one in np.unique(owner)}
    assert all(len(numbers) == 1 for numbers in by_owner.values())
    assert sorted(number for numbers in by_owner.values() for number in numbers) == [1, 2, 3, 4]
    # Neither the order of the rows nor the numbers of the owners nor the scale of the key has a say.
    order = np.array([5, 2, 0, 4, 1, 3])
    assert tokens(3 * key[order] + 1, owner[order], seed=4)[np.argsort(order)].tolist() in (
        [*found],
        swapped(found, owner),
    )
    assert tokens(key, np.array([1, 0, 1, 2, 0, 3], dtype=np.int32), seed=4).tolist() in (
        [*found],
        swapped(found, owner),
    )
    assert len({tuple(tokens(key, owner, seed).tolist()) for seed in range(12)}) > 6
    # Numbers are dealt to contents: whoever publishes 30 and 40 has the one that the seed deals to the last.
    dealt = np.random.default_rng([4, 1]).permutation(4) + 1
    assert found[0] == dealt[3] and found[1] == dealt[0] and {found[3], found[5]} == {dealt[1], dealt[2]}


def swapped(found: Any, owner: Any) -> list[int]:
    """Persons 9 and 5 publish the same and may have each other's number."""
    nine, five = int(found[owner == 9][0]), int(found[owner == 5][0])
    return [five if number == nine else nine if number == five else int(number) for number in found]


PEOPLE: dict[str, Any] = {
    "who": {"role": "person", "publish": "token"},
    "ill": {"role": "sensitive"},
    "age": {"role": "quasi", "within": "first"},
    "ward": {"role": "other"},
}


@pytest.mark.parametrize("seed", [None, 5])
def test_tokens_stand_where_the_person_stood(seed: int | None) -> None:
    frame = pl.DataFrame(
        {"who": [11, 11, 22, 33, 33], "ill": list("fgfgh"), "age": [30, 30, 31, 50, 50], "ward": list("vwxyz")}
    )
    data = Microdata.from_frame(frame, PEOPLE)
    assert data.schema.token == "who" and read_schema({"age": {"role": "quasi"}}).token is None
    partition = Partition(np.array([0, 0, 1]))
    how = {"recode": "generalize", "intervals": "text", "drop_suppressed": False, "shuffle_seed": seed}
    found, people = mask(data, partition, class_states(data, partition, data.space("ncp")), **how)  # type: ignore[arg-type]
    assert found.columns == ["who", "ill", "age", "ward"]
    before = {ward: (ill, who) for who, ill, _, ward in frame.rows()}
    number: dict[int, set[int]] = {}
    for token, ill, age, ward in found.rows():
        assert before[ward][0] == ill and age == ("50" if ward in "yz" else "[30, 31]")
        number.setdefault(before[ward][1], set()).add(token)
    assert all(len(some) == 1 for some in number.values()) and set.union(*number.values()) == {1, 2, 3}
    assert people is not None and people.count == 3
    assert [len(set(found["who"].to_numpy()[people.of_row == i].tolist())) for i in range(3)] == [1, 1, 1]
    if seed is None:
        assert found["ward"].to_list() == list("vwxyz")
        other = frame.with_columns(who=pl.Series([5, 5, 9, 1, 1]))
        again, _ = mask(
            Microdata.from_frame(other, PEOPLE), partition, class_states(data, partition, data.space("ncp")), **how
        )  # type: ignore[arg-type]
        assert again.equals(found)  # what people are called has no say
        # Nor has the order of the rows, which stays: numbers go by what is published.
        turned = np.array([3, 4, 0, 1, 2])
        moved = Microdata.from_frame(frame[turned], PEOPLE)
        classes = Partition(np.array([0, 1, 1]))
        later, _ = mask(moved, classes, class_states(moved, classes, moved.space("ncp")), **how)  # type: ignore[arg-type]
        assert later["ward"].to_list() == list("yzvwx")
        assert dict(zip(later["ward"], later["who"], strict=True)) == dict(
            zip(found["ward"], found["who"], strict=True)
        )


def test_a_release_much_larger_than_its_table_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"a": ["xx", "yy"], "b": [1, 2], "c": ["never", "counted"]})
    data = Microdata.from_frame(frame, {"a": {"role": "quasi"}, "b": {"role": "quasi"}, "c": {"role": "other"}})
    # The quasi-identifiers take 4 + 16 bytes.
    wide = [pl.Series("a", ["z" * 25, "z" * 5]), pl.Series("b", ["z" * 10, None]), pl.Series("n", [1.0, 2.0])]
    for large, larger, fine in ((40, 1, True), (39, 1, False), (1, 2, True), (39, 2, True), (1, 1, False)):
        monkeypatch.setattr("shoal.release.LARGE", large)
        monkeypatch.setattr("shoal.release.LARGER", larger)
        if fine:
            require_size(wide, data)
        else:
            with pytest.raises(UnsupportedError, match="Column 'a' would take 0 MB"):
                require_size(wide, data)


def mixed() -> Microdata:
    frame = pl.DataFrame({"age": [1, 2, 3, 4], "job": ["a", "b", "c", "a"], "town": ["p", "q", "r", "s"]})
    schema = {"age": {"role": "quasi"}, "job": {"role": "quasi", "taxonomy": {"rows": ROWS}}, "town": {"role": "quasi"}}
    return Microdata.from_frame(frame, schema)


def test_regions_joined_hold_both() -> None:
    data = mixed()
    space = data.space("ncp")
    partition = Partition(np.arange(4))
    states = class_states(data, partition, space)
    for i in range(4):
        for j in range(4):
            classes = Partition.compact(np.array([0 if r in (i, j) else r + 1 for r in range(4)]))
            both = class_states(data, classes, space)[classes.labels[i]]
            joined = _union(states[i], states[j], space)
            assert joined[space.slots[0] : space.slots[1]].tolist() == both[space.slots[0] : space.slots[1]].tolist()
            assert joined[space.slots[2] :].tolist() == both[space.slots[2] :].tolist()
            lo, hi = joined[space.slots[1] : space.slots[2]].tolist()
            codes = data.codes[[i, j], 1].tolist()
            assert (lo, hi) == (min(codes), max(codes))


def test_regions_one_step_larger() -> None:
    data = mixed()
    space = data.space("ncp")
    state = class_states(data, Partition(np.arange(4)), space)[1]
    shown = [space.publish(np.array([step])) for step in _steps(state, space)]
    told = [tuple(str(column[0]) for column in columns) for columns in shown]
    assert sorted(told) == sorted(
        [
            ("[1, 2]", "b", "q"),
            ("[2, 3]", "b", "q"),
            ("2", "x", "q"),
            ("2", "b", "{p, q}"),
            ("2", "b", "{q, r}"),
            ("2", "b", "{q, s}"),
        ]
    )
    assert members_of(state[space.slots[2] :]) == [int(data.codes[1, 2])]
