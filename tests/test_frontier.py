"""explore: figures of single runs, a bound beneath, a knee where the curve bends, and runs that go on where they stopped."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import polars as pl
import pytest
from tests.tables import random_table

import shoal
from shoal.frontier import Frontier, Point


def curve(*losses: float, first: float = 2) -> Frontier:
    points = [Point({"k": first * 2**i}, "mondrian", loss=loss) for i, loss in enumerate(losses)]
    return Frontier("ncp", tuple(points))


def test_figures_are_those_of_single_runs_and_the_bound_lies_beneath() -> None:
    data = random_table(6, 120)
    found = shoal.explore(data, {"k": 2}, vary={"k": [2, 4, 8]}, algorithms=["mondrian", "k_member"], seed=3)
    assert [(p.asked["k"], p.algorithm) for p in found.points] == [
        (k, name) for k in (2, 4, 8) for name in ("mondrian", "k_member")
    ]
    for point in found.points:
        single = shoal.anonymize(data, {"k": point.asked["k"]}, algorithm=point.algorithm, refine=False, seed=3)
        assert (point.loss, point.classes) == (single.measures.ncp, single.evidence.classes)
        assert point.risk == 1 / single.evidence.smallest
        assert point.bound is not None
        assert 0 <= point.bound <= point.loss


def test_two_parameters_are_combined() -> None:
    data = random_table(6, 120)
    policy = shoal.KAnonymity(2) & shoal.PSensitive(2, "illness")
    found = shoal.explore(
        data, policy, vary={"k": [2, 4], "p_sensitive.p": [1, 2]}, algorithms=["mondrian"], bound=False
    )
    assert [tuple(p.asked.values()) for p in found.points] == [(2, 1), (2, 2), (4, 1), (4, 2)]
    assert len(found.curve) == 2, "the curve is over the first parameter, the others as they were asked first"


def test_columns_left_out_and_added() -> None:
    frame = pl.DataFrame(
        {"age": list(range(40)), "zip": [i % 4 for i in range(40)], "ward": [i % 3 for i in range(40)]}
    )
    roles = {"age": "quasi", "zip": "quasi", "ward": "other"}
    found = shoal.explore(frame, {"k": 4}, schema=roles, vary={}, columns=["zip", "ward"], algorithms=["mondrian"])
    assert [p.column for p in found.points] == [None, "-zip", "+ward"]
    plain, without, more = (p.loss for p in found.points)
    assert plain is not None
    assert without is not None
    assert more is not None
    assert without < plain < more
    said = " ".join(found.advice)
    assert "Without 'zip' among the quasi-identifiers, k = 4 costs" in said
    assert "With 'ward' among the quasi-identifiers" in said


def test_what_refuses_is_a_point_without_figures() -> None:
    data = random_table(6, 30)
    found = shoal.explore(data, {"k": 2}, vary={"k": [2, 31]}, algorithms=["mondrian"], bound=False)
    assert found.points[1].loss is None
    assert "30" in str(found.points[1].refused)
    assert len(found.curve) == 1


@pytest.mark.parametrize(
    ("losses", "knee"),
    [
        ((0.01, 0.02, 0.03, 0.2, 0.4), 8),
        ((0.0, 0.3, 0.31, 0.32, 0.33), 4),
        ((0.1, 0.2, 0.3, 0.4), None),
        ((0.1, 0.1, 0.1), None),
        ((0.1, 0.4), None),
    ],
)
def test_the_knee_is_where_the_curve_bends(losses: tuple[float, ...], knee: float | None) -> None:
    found = curve(*losses)
    assert (found.knee.asked["k"] if found.knee else None) == knee
    if knee is not None:
        assert found.advice[0].startswith(f"k = {knee:g} is where the curve bends")
    elif len(losses) > 1:
        assert "no value stands out" in found.advice[0]


def test_what_a_doubling_costs_is_told_from_the_figures() -> None:
    assert (
        "up to it each doubling costs 1.0 % of the detail, beyond it 18.5 %"
        in curve(0.01, 0.02, 0.03, 0.2, 0.4).advice[0]
    )


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    data, kept = random_table(6, 60), tmp_path / "kept.jsonl"
    settings = {"vary": {"k": [2, 3, 5]}, "algorithms": ["mondrian"], "keep": kept, "bound": False}

    def stop(point: Point) -> None:
        if point.asked["k"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shoal.explore(data, {"k": 2}, **settings, each=stop)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    before = kept.read_text(encoding="utf-8").splitlines()
    with kept.open("a", encoding="utf-8") as handle:
        handle.write('{"job": "torn')
    kept.write_text(kept.read_text(encoding="utf-8"), encoding="utf-8")
    found = shoal.explore(data, {"k": 2}, **settings)
    whole = shoal.explore(data, {"k": 2}, **{**settings, "keep": None})
    assert found.points == whole.points
    jobs = [json.loads(line)["job"] for line in before[1:]]
    assert jobs, "something had been found before"


def test_another_table_is_not_gone_on_with(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    settings = {"vary": {"k": [2]}, "algorithms": ["mondrian"], "keep": kept, "bound": False}
    shoal.explore(random_table(6, 60), {"k": 2}, **settings)
    with pytest.raises(shoal.InputError, match="another table"):
        shoal.explore(random_table(7, 60), {"k": 2}, **settings)
    with pytest.raises(shoal.InputError, match="other settings"):
        shoal.explore(random_table(6, 60), {"k": 2}, **settings, seed=9)
    kept.write_text("nonsense", encoding="utf-8")
    with pytest.raises(shoal.InputError, match="no file that explore has kept"):
        shoal.explore(random_table(6, 60), {"k": 2}, **settings)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"vary": {"kk": [2]}}, "no parameter 'kk'"),
        ({"vary": {"k": "2"}}, "list of numbers"),
        ({"vary": {"k": ["two"]}}, "str is none"),
        ({"columns": ["agee"]}, "no column 'agee'"),
        ({"algorithms": ["mondrain"], "vary": {}}, "did you mean"),
    ],
)
def test_what_cannot_be_explored_gets_a_sentence(more: dict[str, object], words: str) -> None:
    with pytest.raises(shoal.ShoalError, match=words):
        shoal.explore(random_table(6, 60), {"k": 2}, **{"algorithms": ["mondrian"], "bound": False, **more})  # type: ignore[arg-type]
