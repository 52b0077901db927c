"""Twenty calls that people make first, in pandas, polars and pyarrow: each works, or gets a sentence that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal

LIBRARIES = ("pandas", "polars", "pyarrow")
POLICY = {"k": 3, "p_sensitive": {"p": 2}}
NAMES = {"quasi": ["age", "zip"], "sensitive": "diagnosis"}
QUICK = {"algorithm": "mondrian", "refine": False}


def patients(library: str, n: int = 60) -> Any:
    random = np.random.default_rng(3)
    table = pl.DataFrame(
        {
            "name": [f"patient {i}" for i in range(n)],
            "age": random.integers(20, 60, n),
            "zip": [f"{code}" for code in random.choice([10115, 10117, 10119, 20095], n)],
            "diagnosis": random.choice(["flu", "cold", "ulcer", "HIV"], n).tolist(),
        }
    )
    return {"pandas": table.to_pandas, "polars": table.clone, "pyarrow": table.to_arrow}[library]()


@pytest.fixture(params=LIBRARIES)
def table(request: pytest.FixtureRequest) -> Any:
    return patients(request.param)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    patients("polars").write_csv(path)
    return path


@pytest.fixture
def config(tmp_path: Path, file: Path) -> Path:
    path = tmp_path / "shoal.toml"
    path.write_text(
        '[source]\npath = "patients.csv"\n[policy]\nk = 3\n[attributes.name]\nrole = "identifier"\n'
        '[attributes.age]\nrole = "quasi"\n[attributes.zip]\nrole = "quasi"\nkind = "category"\n'
        '[attributes.diagnosis]\nrole = "sensitive"\n',
        encoding="utf-8",
    )
    return path


# -- calls that work


def test_one_line(table: Any) -> None:
    release = shoal.anonymize(table, POLICY, **NAMES, **QUICK)
    assert type(release.frame) is type(table)
    assert release.evidence.passed
    assert list(pl.DataFrame(release.frame).columns) == ["age", "zip", "diagnosis"], "nobody named the names"


def test_a_schema_of_roles(table: Any) -> None:
    roles = {"name": "identifier", "age": "quasi", "zip": "quasi", "diagnosis": "sensitive"}
    release = shoal.anonymize(table, shoal.KAnonymity(3), schema=roles, **QUICK)
    again = shoal.anonymize(table, {"k": 3}, **NAMES, **QUICK)
    assert release.masked.sort(release.masked.columns).equals(again.masked.sort(again.masked.columns))


def test_a_schema_with_more_than_roles(table: Any) -> None:
    rest = {"role": "identifier", "repeats": "allowed"}
    roles = {"*": rest, "age": {"role": "quasi", "domain": [0, 120]}}
    assert shoal.anonymize(table, {"k": 3}, schema=roles, **QUICK).data.schema.attributes["age"].domain == (0, 120)


def test_models_dictionaries_and_files_are_policies(table: Any, config: Path) -> None:
    policies = [shoal.KAnonymity(3), shoal.Policy((shoal.KAnonymity(3),)), {"k": 3}, config, str(config)]
    found = [shoal.anonymize(table, policy, **NAMES, **QUICK).policy for policy in policies]
    assert len(set(map(str, found))) == 1


def test_a_configuration_says_it_all(table: Any, config: Path) -> None:
    release = shoal.anonymize(table, config, **QUICK)
    assert release.data.schema.attributes["zip"].kind == "category"
    assert "name" not in release.masked.columns


def test_paths_everywhere(file: Path, config: Path, tmp_path: Path) -> None:
    release = shoal.anonymize(file, config, **QUICK)
    out = release.write(tmp_path / "masked.csv")
    assert shoal.verify(out, config).passed
    assert shoal.verify(str(out), {"k": 3}, config).passed
    assert shoal.attack(out, config).records == 60
    assert shoal.measure(file, out, config).measures.classes == release.evidence.classes
    assert shoal.profile(file).named("quasi")


def test_a_release_never_overwrites_the_file_it_came_from(file: Path, config: Path) -> None:
    with pytest.raises(shoal.InputError, match="never overwrites"):
        shoal.anonymize(file, config, **QUICK).write(file, force=True)


def test_verify_a_frame(table: Any) -> None:
    release = shoal.anonymize(table, POLICY, **NAMES, **QUICK)
    evidence = shoal.verify(release.frame, POLICY, **NAMES)
    assert evidence.passed
    assert type(evidence.frame) is type(table)
    assert evidence.to_dict()["records"] == 60
    assert not shoal.verify(release.frame, {"k": 50}, **NAMES).passed
    assert shoal.verify(release).passed


def test_verify_without_roles_says_what_it_assumed(table: Any) -> None:
    release = shoal.anonymize(table, POLICY, **NAMES, **QUICK)
    evidence = shoal.verify(release.frame, {"k": 3})
    assert any("'age' is taken for quasi" in note for note in evidence.notes)


def test_attack_measure_profile(table: Any) -> None:
    release = shoal.anonymize(table, POLICY, **NAMES, **QUICK)
    attacks = shoal.attack(release.frame, **NAMES, external=table)
    assert type(attacks.frame) is type(table)
    assert attacks.to_dict()["attacks"][-1]["attack"] == "linking"
    assert shoal.attack(release).records == 60
    measured = shoal.measure(table, release.frame, **NAMES, queries=50)
    assert type(measured.frame) is type(table)
    assert measured.to_dict()["query_error"]["queries"] == 50
    assert measured.measures.ncp == pytest.approx(release.measures.ncp)
    profile = shoal.profile(table)
    assert type(profile.frame) is type(table)
    assert profile.named("identifier") == ["name"]


def test_persons_by_name() -> None:
    visits = pl.concat([patients("polars"), patients("polars")])
    release = shoal.anonymize(visits, {"k": 3}, quasi=["age", "zip"], sensitive="diagnosis", person="name", **QUICK)
    assert release.evidence.persons == 60


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_forgotten_person_is_noticed(library: str) -> None:
    one = patients("polars").with_columns(patient_id=pl.int_range(pl.len()))
    visits = pl.concat([one, one])
    table = {"pandas": visits.to_pandas, "polars": visits.clone, "pyarrow": visits.to_arrow}[library]()
    with pytest.raises(shoal.ConfigError, match="person='patient_id'"):
        shoal.anonymize(table, {"k": 3}, **NAMES, **QUICK)
    assert shoal.anonymize(table, {"k": 3}, **NAMES, person="patient_id", **QUICK).evidence.persons == 60


# -- calls that get a sentence

CALLS: dict[str, tuple[Any, str]] = {
    "no roles": (lambda t: shoal.anonymize(t, {"k": 3}), r"name them with quasi=\[…\]"),
    "a misspelt column": (lambda t: shoal.anonymize(t, {"k": 3}, quasi="agee"), "did you mean 'age'"),
    "a misspelt role": (
        lambda t: shoal.anonymize(t, {"k": 3}, schema={"age": "quasy", "*": "other"}),
        "did you mean 'quasi'",
    ),
    "a misspelt model": (lambda t: shoal.anonymize(t, {"p_sensitve": {"p": 2}}, **NAMES), "did you mean 'p_sensitive'"),
    "a number as policy": (lambda t: shoal.anonymize(t, 5, **NAMES), r'a dictionary such as \{"k": 5\}'),
    "a model's class": (lambda t: shoal.anonymize(t, shoal.KAnonymity, **NAMES), "the class KAnonymity"),
    "a model's name": (lambda t: shoal.anonymize(t, "t_closeness", **NAMES), "how much is asked"),
    "the arguments swapped": (lambda t: shoal.anonymize({"k": 3}, t, **NAMES), "first argument is the table"),
    "a list as table": (lambda t: shoal.anonymize([1, 2], {"k": 3}, quasi="age"), "pandas, polars or pyarrow"),
    "a column that is two things": (
        lambda t: shoal.anonymize(t, {"k": 3}, quasi="age", sensitive="age"),
        "called quasi and sensitive",
    ),
    "numbers as names": (lambda t: shoal.anonymize(t, {"k": 3}, quasi=[1]), "no name"),
    "quasi as a dictionary": (lambda t: shoal.anonymize(t, {"k": 3}, quasi={"age": 1}), "a list of names"),
    "k that is too large": (lambda t: shoal.anonymize(t, {"k": 61}, **NAMES), "60"),
    "a misspelt algorithm": (
        lambda t: shoal.anonymize(t, {"k": 3}, **NAMES, algorithm="mondrain"),
        "did you mean 'mondrian'",
    ),
    "a misspelt option": (lambda t: shoal.anonymize(t, {"k": 3}, **NAMES, sed=3), "sed"),
    "a missing file": (lambda t: shoal.anonymize("no_such.csv", {"k": 3}, quasi="age"), "no_such.csv"),
    "verify without a policy": (lambda t: shoal.verify(t), "give a policy"),
    "an unmasked file": (lambda t: shoal.verify(t, {"k": 3}, **NAMES), "'name' has no role"),
    "a schema that is none": (lambda t: shoal.anonymize(t, {"k": 3}, schema=5), "a schema is a mapping"),
    "a person alone": (lambda t: shoal.verify(t, {"k": 3}, person="name"), "name the quasi-identifiers"),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_cannot_be_gets_a_sentence(call: str) -> None:
    asked, words = CALLS[call]
    for library in LIBRARIES:
        with pytest.raises(shoal.ShoalError, match=words) as problem:
            asked(patients(library))
        assert "patient 1" not in str(problem.value)
        assert str(problem.value).endswith(("?", "."))


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    import subprocess
    import sys

    code = "import sys, shoal; print([m for m in ('numpy', 'polars', 'pandas', 'numba', 'altair') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_results_are_frames_of_their_library() -> None:
    release = shoal.anonymize(patients("pandas"), {"k": 3}, **NAMES, **QUICK)
    assert isinstance(release.frame, pd.DataFrame)
    assert isinstance(shoal.anonymize(patients("pyarrow"), {"k": 3}, **NAMES, **QUICK).frame, pa.Table)
