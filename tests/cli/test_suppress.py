"""`[method] suppress` in a configuration: what is asked for is what happens, for every command that reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.errors import call, captured, inside

CONFIG = """
[source]
path = "people.csv"

[attributes.age]
role = "quasi"

[attributes.pay]
role = "quasi"

[policy]
k = 12

[method]
algorithm = "mondrian"
refine = false
@SUPPRESS@

[release]
suppressed = "drop"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two of sixty are far from everybody."""
    rows = [f"{20 + i % 9},{100 + i * 7 % 13}" for i in range(58)] + ["97,880", "99,900"]
    (tmp_path / "people.csv").write_text("age,pay\n" + "\n".join(rows) + "\n")
    for name, line in (("none", ""), ("zero", "suppress = 0.0"), ("some", "suppress = 0.05")):
        (tmp_path / f"{name}.toml").write_text(CONFIG.replace("@SUPPRESS@", line))
    return tmp_path


def shoal(folder: Path, *arguments: str) -> tuple[int, str, str]:
    with inside(folder), captured() as (out, err):
        code = call(arguments)
    return code, out.getvalue(), err.getvalue()


def test_anonymize_suppresses_as_many_as_it_may(folder: Path) -> None:
    told = {}
    for name in ("none", "zero", "some"):
        code, _, err = shoal(folder, "anonymize", "-c", f"{name}.toml", "-o", f"{name}.csv")
        assert code == 0, err
        told[name] = json.loads((folder / f"{name}.csv.secret.json").read_text())
    assert {name: one["measures"]["suppressed"] for name, one in told.items()} == {"none": 0, "zero": 0, "some": 2}
    assert (folder / "none.csv").read_bytes() == (folder / "zero.csv").read_bytes()
    assert len((folder / "some.csv").read_text().splitlines()) == 1 + 58
    assert told["some"]["measures"]["ncp"] < told["none"]["measures"]["ncp"]
    assert told["some"]["settings"]["suppress"] == 0.05


def test_compare_honours_it_too(folder: Path) -> None:
    code, out, err = shoal(folder, "compare", "-c", "some.toml", "-a", "mondrian,k_member", "--json")
    assert code == 0, err
    assert {row["algorithm"]: row["suppressed"] for row in json.loads(out)["results"]} == {"mondrian": 2, "k_member": 2}


def test_a_store_refuses_it(folder: Path) -> None:
    code, _, err = shoal(folder, "store", "create", "-s", "sqlite:///a.db", "-c", "some.toml", "--key", "age")
    assert code == 2
    assert "no suppress" in err
