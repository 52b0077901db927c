"""The short form of `python -m tools.fuzz`: random releases, written, read back, and judged by a checker that is not ours."""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from tests.reference.models import About
from tests.reference.release import cells_of, changed_secrets, uncovered, violations
from tests.strategies import FORMATS, Attempt, Thrown, a_table, a_taxonomy, an_attempt, drawn
from tools.fuzz import campaign, thrown, try_release

import shoal
from shoal.errors import InputError, InternalError
from shoal.readable import require_fitting

CASES = 400
K3 = [("k_anonymity", {"k": 3})]


def test_random_releases() -> None:
    tally = campaign(cases=CASES, seed=2026)
    assert not tally.failed, str(tally)
    assert tally.released > CASES // 2
    assert all(len(found) > 2 for what, found in tally.by.items() if what in ("algorithm", "model", "recode", "format"))


def test_what_comes_out_does_not_depend_on_the_number_of_processes() -> None:
    alone, together = (campaign(cases=30, seed=5, processes=processes) for processes in (1, 2))
    assert alone.released + alone.refused.total() == 30 and alone.released > 10
    # Tests show values in messages, and the other processes do not: refusals are counted.
    assert (alone.released, alone.refused.total(), alone.failed) == (together.released, together.refused.total(), [])
    assert (alone.by, alone.pairs) == (together.by, together.pairs)


def test_failures_are_counted_by_their_kind_and_named_by_their_case(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [AssertionError("a class breaks it"), InternalError("ours"), ValueError("a surprise"), None]

    def tried(attempt: Attempt, folder: Path) -> str | None:
        problem = problems[len(seen) % len(problems)]
        seen.append(attempt)
        if problem is not None:
            raise problem
        return "InputError: no"

    seen: list[Attempt] = []
    monkeypatch.setattr("tools.fuzz.try_release", tried)
    tally = campaign(cases=8, seed=3)
    assert tally.kinds == {"violations": 2, "internal errors": 2, "tracebacks": 2} and tally.refused.total() == 2
    assert [one.partition(" ")[0] for one in tally.failed] == ["3:0", "3:1", "3:2", "3:4", "3:5", "3:6"]
    assert str(thrown("3:4")) == str(seen[4])  # what --only tries again
    assert "2 violations, 2 internal errors, 2 tracebacks" in str(tally)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(drawn(an_attempt, algorithm="mondrian", largest=12))
def test_small_releases_that_hypothesis_makes_smaller(
    tmp_path_factory: pytest.TempPathFactory, attempt: Attempt
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try_release(attempt, tmp_path_factory.mktemp("release"))


@settings(max_examples=50, deadline=None)
@given(drawn(a_taxonomy))
def test_drawn_taxonomies_are_taxonomies(rows: list[list[str]]) -> None:
    tree = shoal.Taxonomy.from_rows(rows)
    assert sorted(tree.labels[: tree.leaves]) == sorted(row[0] for row in rows)


def test_a_case_is_the_same_whenever_it_is_thrown() -> None:
    first, again = (an_attempt(Thrown("3:4")) for _ in range(2))
    assert str(first) == str(again)
    assert str(first) != str(an_attempt(Thrown("3:5")))
    assert a_table(Thrown(1)).frame.equals(a_table(Thrown(1)).frame)


def masked(ages: list[str | None], illness: list[str | None]) -> tuple[list[str], list[list[str | None]]]:
    return ["age", "ill"], [list(row) for row in zip(ages, illness, strict=True)]


def test_the_checker_finds_what_is_wrong() -> None:
    """A checker that never complains proves nothing."""
    good = masked(["[1, 2]"] * 3 + ["5"] * 3, ["a", "b", "a"] * 2)
    assert not list(violations(*good, K3, ["age"], {"ill": About()}))
    small = masked(["[1, 2]"] * 4 + ["5"] * 2, ["a", "b", "a"] * 2)
    assert "breaks k_anonymity" in next(violations(*small, K3, ["age"], {"ill": About()}))
    spelled = masked(["5", "5", "5", "5 ", "5 ", "5 "], ["a", "A", "a ", "a", "b", None])
    two = [("p_sensitive", {"p": 2, "attribute": "ill"})]
    assert len(list(violations(*spelled, two, ["age"], {"ill": About()}, folded={"ill"}))) == 1
    owned = violations(*good, K3, ["age"], {}, owners=["x", "y", "x", "z", "w", "z"])
    assert sum("breaks k_anonymity" in found for found in owned) == 2
    split = violations(*good, K3, ["age"], {}, owners=["x", "y", "z", "x", "u", "v"])
    assert "in two classes" in next(split)
    assert changed_secrets(["a", "b"], ["b", "a"], kept_order=True)
    assert not changed_secrets(["a", "b"], ["b", "a"], kept_order=False)
    assert uncovered("[1, 2]", 3, None) and not uncovered("[1, 2]", 2, None) and not uncovered("*", None, None)
    assert uncovered("a", "v1", {"v1": "b", "b": "*"}) and not uncovered("b", "v1", {"v1": "b", "b": "*"})


@pytest.mark.parametrize("format", FORMATS)
def test_the_checker_reads_every_format(tmp_path: Path, format: str) -> None:
    frame = pl.DataFrame({"age": [21, 22, None, 41], "ill": ["flu", None, None, 'a, b\n"c"']})
    schema = {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    release = shoal.anonymize(
        shoal.Microdata.from_frame(frame, schema), shoal.KAnonymity(1), algorithm="mondrian", refine=False, order="keep"
    )
    header, rows = cells_of(release.write(tmp_path / f"masked.{format}"))
    assert header == ["age", "ill"]
    assert [row[1] for row in rows] == frame["ill"].to_list()
    assert [row[0] for row in rows] == ["21", "22", None, "41"]


def test_a_row_of_nothing_is_refused_for_a_workbook_before_the_search(tmp_path: Path) -> None:
    """Excel files hold cells, not rows: one at the end that has none is lost."""
    frame = pl.DataFrame({"age": [21, 22, None], "ill": ["flu", "cold", None]})
    data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})
    policy = shoal.Policy((shoal.KAnonymity(1),))
    with pytest.raises(InputError, match=r"Record 3 .*no value"):
        require_fitting(data, policy, tmp_path / "masked.xlsx")
    require_fitting(data, policy, tmp_path / "masked.csv")
