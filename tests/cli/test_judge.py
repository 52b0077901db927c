"""`shoal verify`, `shoal attack` and `shoal measure` on files that somebody else made."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.errors import call, captured, inside

from shoal.io.files import write_table

CONFIG = """
[attributes.age]
role = "quasi"
kind = "number"

[attributes.zip]
role = "quasi"
kind = "category"
taxonomy = { prefix = [3, 2, 0] }

[attributes.illness]
role = "sensitive"
taxonomy = { rows = [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "*"]] }
protect = ["lung"]
"""
ORIGINAL = pl.DataFrame(
    {
        "age": [21, 23, 27, 29, 31, 35],
        "zip": ["41076", "41077", "41076", "41099", "41111", "41112"],
        "illness": ["flu", "cold", "ulcer", "flu", "ulcer", "ulcer"],
    }
)
MASKED = ORIGINAL.with_columns(
    age=pl.Series(["[21, 29]"] * 4 + ["[31, 35]"] * 2), zip=pl.Series(["410**"] * 4 + ["411**"] * 2)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(ORIGINAL, tmp_path / "patients.csv")
    write_table(MASKED[::-1], tmp_path / "masked.csv")
    (tmp_path / "shoal.toml").write_text(CONFIG + "\n[policy]\nk = 2\n")
    (tmp_path / "bare.toml").write_text(CONFIG)
    return tmp_path


def shoal(folder: Path, *arguments: str) -> tuple[int, str, str]:
    with inside(folder), captured() as (out, err):
        code = call(arguments)
    return code, out.getvalue(), err.getvalue()


def test_verify_says_how_strong_a_file_is_without_a_policy(folder: Path) -> None:
    code, out, err = shoal(folder, "verify", "masked.csv", "-c", "bare.toml", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["passed"] is None
    found = {(s["model"], *s["settings"].values()): s["strongest"] for s in told["strongest"]}
    assert found[("k_anonymity",)] == 2
    assert found[("p_sensitive",)] == 1
    assert found[("extended_p_sensitive",)] == 1
    assert found[("alpha_k",)] == 1
    assert found[("l_diversity", "entropy")] == pytest.approx(1)
    # The second class has ulcers only, which half of the table has.
    assert found[("t_closeness", "equal")] == pytest.approx(1 / 2)
    assert ("k_e", "rows") not in found


def test_verify_with_a_policy_says_both(folder: Path) -> None:
    code, out, err = shoal(folder, "verify", "masked.csv", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["passed"] is True
    assert told["checks"][0]["strongest"] == 2
    assert {"t_closeness", "personalized", "kpqr"} <= {s["model"] for s in told["strongest"]}
    _, shown, _ = shoal(folder, "verify", "masked.csv")
    assert "How strong it is by every model" in shown


def test_verify_without_a_configuration_says_what_it_assumes(folder: Path) -> None:
    (folder / "shoal.toml").unlink()
    code, out, err = shoal(folder, "verify", "masked.csv", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert [(column["name"], column["role"]) for column in told["assumed"]] == [
        ("age", "quasi"),
        ("zip", "quasi"),
        ("illness", "sensitive"),
    ]
    assert all(column["why"] for column in told["assumed"])
    assert told["smallest"] == 2
    code, shown, _ = shoal(folder, "verify", "masked.csv")
    assert "roles as they look" in shown and "there is no policy to check" in shown


def test_a_t_that_the_file_does_not_have_is_refused(folder: Path) -> None:
    claim = CONFIG + '\n[policy]\nk = 2\nt_closeness = { t = 0.4, distance = "equal" }\n'
    (folder / "claim.toml").write_text(claim)
    code, _, err = shoal(folder, "verify", "masked.csv", "-c", "claim.toml")
    assert code == 1
    assert "class (age = [31, 35], zip = 411**) with 2 records fails t_closeness" in err
    assert "by 0.1" in err


def test_a_small_class_of_suppressed_records_is_refused(folder: Path) -> None:
    rows = MASKED.with_row_index("i")
    starred = rows.with_columns(
        pl.when(pl.col("i") == 0).then(pl.lit("*")).otherwise(pl.col(name)).alias(name) for name in ("age", "zip")
    ).drop("i")
    write_table(starred, folder / "starred.csv")
    code, _, err = shoal(folder, "verify", "starred.csv")
    assert code == 1
    assert "the class of suppressed records (age = *, zip = *) with 1 record fails k_anonymity(k = 2) by 1" in err


def test_measure_prints_every_measure(folder: Path) -> None:
    code, out, err = shoal(folder, "measure", "patients.csv", "masked.csv", "--json", "--queries", "50")
    assert code == 0, err
    told = json.loads(out)
    age = (4 * 8 + 2 * 4) / 14 / 6
    assert told["attributes"]["age"]["ncp"] == pytest.approx(age)
    # 410** has three of the five zips below it and 411** two.
    assert told["attributes"]["zip"]["ncp"] == pytest.approx((4 * 3 / 5 + 2 * 2 / 5) / 6)
    assert (told["classes"], told["dm"], told["suppressed"]) == (2, 20, 0)
    assert told["sse"] is None
    assert told["query_error"]["queries"] == 50
    assert any("ncp_distinct" in note for note in told["notes"])


def test_measure_knows_the_order_and_predicts(folder: Path) -> None:
    write_table(MASKED, folder / "kept.csv")
    code, out, err = shoal(folder, "measure", "patients.csv", "kept.csv", "--aligned", "--queries", "0", "--json")
    assert code == 0, err
    assert json.loads(out)["sse"] is not None
    code, _, err = shoal(folder, "measure", "patients.csv", "kept.csv", "--predict", "age")
    assert code == 2
    assert "'age' is not published unchanged" in err
    _, shown, _ = shoal(folder, "measure", "patients.csv", "masked.csv")
    assert "What it cost" in shown and "random counting queries" in shown


def test_measure_names_what_it_cannot_read(folder: Path) -> None:
    write_table(MASKED.with_columns(zip=pl.lit("4107*")), folder / "strange.csv")
    code, _, err = shoal(folder, "measure", "patients.csv", "strange.csv")
    assert code == 2
    assert "Column 'zip': a cell is neither a value nor a generalization" in err


def test_attack_says_what_an_intruder_learns(folder: Path) -> None:
    write_table(pl.DataFrame({"name": ["Anna", "Ben"], "age": [33, 22], "zip": [41111, 41076]}), folder / "voters.csv")
    code, out, err = shoal(folder, "attack", "masked.csv", "--external", "voters.csv", "--fraction", "0.1", "--json")
    assert code == 0, err
    told = json.loads(out)
    found = {attack["attack"]: attack for attack in told["attacks"]}
    assert found["homogeneity"]["exposed"] == 2
    assert found["linking"]["certain"] == 1
    assert found["linking"]["fewest_candidates"] == 2
    assert told["risk"]["prosecutor"]["highest"] == 0.5
    assert told["uniqueness"]["estimate"] == 0
    _, shown, _ = shoal(folder, "attack", "masked.csv")
    assert "everybody has the same 'illness'" in shown


def test_attack_with_thresholds(folder: Path) -> None:
    assert shoal(folder, "attack", "masked.csv", "--threshold", "homogeneity=0.5")[0] == 0
    code, out, err = shoal(folder, "attack", "masked.csv", "--threshold", "homogeneity=0.2", "--json")
    assert code == 1
    assert "homogeneity of 'illness' exposes 33.33%, allowed are 20.00%." in err
    assert json.loads(out)["exceeded"]
    code, _, err = shoal(folder, "attack", "masked.csv", "--threshold", "prosecutor=0.3")
    assert (code, "risk by the prosecutor is 0.5" in err) == (1, True)
    assert shoal(folder, "attack", "masked.csv", "--threshold", "0")[0] == 1


@pytest.mark.parametrize(
    ("word", "says"),
    [("homogenity=0.1", "did you mean 'homogeneity'"), ("linking=much", "'much' is not a share"), ("7", "'7' is not")],
)
def test_thresholds_are_checked(folder: Path, word: str, says: str) -> None:
    code, _, err = shoal(folder, "attack", "masked.csv", "--threshold", word)
    assert code == 2
    assert says in err


def test_attack_across_releases(folder: Path) -> None:
    newer = pl.concat([MASKED, pl.DataFrame({"age": ["[31, 35]"], "zip": ["411**"], "illness": ["cold"]})])
    write_table(newer, folder / "newer.csv")
    code, out, err = shoal(folder, "attack", "newer.csv", "--previous", "masked.csv", "--json")
    assert code == 0, err
    found = {attack["attack"]: attack for attack in json.loads(out)["attacks"]}
    assert found["difference"]["exposed"] == 1
    assert found["intersection"]["exposed"] == 3


def test_journalists_need_a_population(folder: Path) -> None:
    write_table(pl.concat([ORIGINAL, ORIGINAL]).drop("illness"), folder / "everybody.csv")
    code, out, _ = shoal(folder, "attack", "masked.csv", "--population", "everybody.csv", "--json")
    assert code == 0
    assert json.loads(out)["risk"]["journalist"]["highest"] == 0.25
    code, _, err = shoal(folder, "attack", "masked.csv", "--threshold", "journalist=0.1")
    assert (code, "--population" in err) == (2, True)


def test_minimality_where_shares_are_limited(folder: Path) -> None:
    policy = "\n[policy]\nk = 2\nalpha_k = { alpha = 0.5 }\n\n[method]\nalgorithm = "
    write_table(ORIGINAL.drop("illness"), folder / "everybody.csv")
    for algorithm, expected in (("mondrian", True), ("k_member", False)):
        (folder / "alpha.toml").write_text(CONFIG + policy + f'"{algorithm}"\n')
        code, out, err = shoal(
            folder, "attack", "masked.csv", "-c", "alpha.toml", "--external", "everybody.csv", "--json"
        )
        assert code == 0, err
        told = json.loads(out)
        assert ("minimality" in {attack["attack"] for attack in told["attacks"]}) == expected
        assert bool(told["notes"]) != expected


@pytest.mark.parametrize("command", ["verify", "attack", "measure"])
def test_help_teaches_with_an_example(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = shoal(folder, command, "--help")
    assert code == 0
    assert f"Example: shoal {command}" in out
