"""The sixty lines of docs/check_release.py: standard library alone, and the same figures as the verifier's."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import shoal
from shoal.datasets import hospital
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.verifier import verify_file

SCRIPT = Path(__file__).parents[1] / "docs" / "check_release.py"
QUASI = ["age", "sex", "zip"]


def checked(path: Path, *more: str, quasi: str = "age,sex,zip") -> tuple[int, dict[str, object], str]:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(SCRIPT), str(path), "--quasi", quasi, "--sensitive", "diagnosis", *more],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def table() -> Microdata:
    schema = {
        "age": {"role": "quasi", "kind": "number"},
        "sex": {"role": "quasi"},
        "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 2, 0]}},
        "diagnosis": {"role": "sensitive"},
    }
    return Microdata.from_frame(hospital(300, 4).select(list(schema)), schema)


def test_it_is_sixty_lines_of_the_standard_library() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    names = {name.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for name in node.names}
    assert names <= set(sys.stdlib_module_names)
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(ast.parse(text)))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "jsonl"])
def test_it_agrees_with_the_verifier(suffix: str, tmp_path: Path) -> None:
    data, policy = table(), Policy((shoal.KAnonymity(4), shoal.PSensitive(2)))
    made = shoal.anonymize(data, policy, algorithm="mondrian", refine=False)
    path = made.write(tmp_path / f"masked.{suffix}")
    found = verify_file(path, policy, data.schema)
    code, told, problem = checked(path, "-k", "4", "-p", "2")
    assert code == 0, problem
    assert told == {
        "classes": found.classes,
        "k": found.smallest,
        "distinct": {"diagnosis": int(found.checks[1].strongest)},
    }
    assert checked(path, "-k", str(found.smallest + 1))[0] == 1
    assert checked(path, "-p", str(int(found.checks[1].strongest) + 1))[0] == 1


def test_ends_of_intervals_are_columns_like_others(tmp_path: Path) -> None:
    policy = Policy((shoal.KAnonymity(4), shoal.PSensitive(2)))
    made = shoal.anonymize(table(), policy, algorithm="mondrian", refine=False, intervals="columns")
    path = made.write(tmp_path / "masked.csv")
    code, told, _ = checked(path, "-k", "4", quasi="age_min,age_max,sex,zip")
    assert (code, told["k"]) == (0, made.evidence.smallest)


@pytest.mark.parametrize(
    ("ages", "ills", "columns", "code"),
    [
        (["34", "34", "34.0", "34.0"], ["flu", "cold"] * 2, {}, 1),
        (["34"] * 4, ["flu", "Flu", " flu", "NA"], {}, 1),
        (["34"] * 4, ["flu", "cold", "flu", "cold"], {"name": list("abcd")}, 1),
        (["34"] * 4, ["flu", "cold", "flu", "cold"], {}, 0),
    ],
)
def test_forgeries(ages: list[str], ills: list[str], columns: dict[str, list[str]], code: int, tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": ages, "diagnosis": ills, **columns})
    frame.write_csv(tmp_path / "masked.csv")
    assert checked(tmp_path / "masked.csv", "-k", "3", "-p", "2", quasi="age")[0] == code
