"""Masked files of other tools: `verify` and `attack` say of them what they say of ours, persons included.

anonypy and anjana mask the same visits here and now. They count rows, so a person's rows may lie in several classes and a class
of many rows may be one person's; whoever names the key column is told so. Every figure is counted again by plain loops.
`pip install --no-deps -r tests/peers.txt` installs both (`make test` does).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import polars as pl
import pytest
from tests.reference.persons import hitting
from tests.visits import visits
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app

QUASI = ["age", "zip", "sex"]
K = 5


def original() -> pl.DataFrame:
    """Visits in which a person's quasi-identifiers are the same in all rows, as numbers where the tools want numbers."""
    frame = visits(120, 400, seed=3).drop_nulls().select("pid", *QUASI, "illness")
    return frame.with_columns(pl.col("age").max().over("pid"), pl.col("zip", "sex").first().over("pid"))


def by_anonypy() -> pl.DataFrame:
    """Mondrian by rows. It publishes a count for each class and sensitive value: key and illness together are that value here."""
    anonypy = pytest.importorskip(
        "anonypy", reason="anonypy is not installed: pip install --no-deps -r tests/peers.txt"
    )
    table = original().with_columns(both=pl.col("pid") + "|" + pl.col("illness"), zip=pl.col("zip").cast(pl.Int64))
    data = table.select(*QUASI, "both").to_pandas()
    for name in ("sex", "both"):
        data[name] = data[name].astype("category")
    rows = anonypy.Preserver(data, QUASI, "both").anonymize_k_anonymity(K)
    masked = [
        {**{name: ",".join(map(str, row[name])) for name in QUASI}, "pid": key, "illness": illness}
        for row in rows
        for key, illness in [row["both"].split("|")]
        for _ in range(row["count"])
    ]
    return pl.DataFrame(masked)


def by_anjana() -> pl.DataFrame:
    """One level a column, and up to a tenth of the rows suppressed."""
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    anonymity = pytest.importorskip(
        "anjana.anonymity", reason="anjana is not installed: pip install --no-deps -r tests/peers.txt"
    )
    table = original()
    age = [f"[{a // 20 * 20}, {a // 20 * 20 + 19}]" for a in table["age"]]
    levels = {
        "age": [table["age"].to_list(), age, ["*"] * table.height],
        "zip": [table["zip"].to_list(), [z[:2] + "**" for z in table["zip"]], ["*"] * table.height],
        "sex": [table["sex"].to_list(), ["*"] * table.height],
    }
    # It expects texts to be plain objects, as they were before pandas 3, which says that this will end.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandas.set_option("future.infer_string", False)
        data = pandas.DataFrame(table.to_dict(as_series=False))
        ladders = {name: dict(enumerate(map(pandas.Series, columns))) for name, columns in levels.items()}
        masked = anonymity.k_anonymity(data, [], QUASI, K, 10, ladders)
        pandas.reset_option("future.infer_string")
        return pl.DataFrame({name: masked[name].astype(str).tolist() for name in ("pid", *QUASI, "illness")})


def by_shoal(rows: bool) -> pl.DataFrame:
    """Our own release, by rows or by persons, the key put back beside it."""
    person = {"role": "identifier", "repeats": "allowed"} if rows else {"role": "person"}
    schema = {"pid": person, **{name: {"role": "quasi"} for name in QUASI}, "illness": {"role": "sensitive"}}
    data = shoal.Microdata.from_frame(original(), schema)
    made = shoal.anonymize(data, shoal.KAnonymity(K), algorithm="mondrian", refine=False, order="keep")
    return made.masked.with_columns(original()["pid"])


TOOLS = {
    "anonypy": by_anonypy,
    "anjana": by_anjana,
    "shoal, by rows": lambda: by_shoal(rows=True),
    "shoal, by persons": lambda: by_shoal(rows=False),
}


@pytest.fixture(scope="module", params=TOOLS)
def masked(request: pytest.FixtureRequest) -> tuple[str, pl.DataFrame]:
    return request.param, TOOLS[request.param]()


def counted(table: pl.DataFrame) -> dict[str, float]:
    """By plain loops: the smallest class, the fewest values, of rows and of persons; persons in several classes; shares."""
    classes: dict[tuple, list[tuple[str, str]]] = {}
    for row in table.select(*QUASI, "pid", "illness").rows():
        classes.setdefault(row[:3], []).append(row[3:])
    people = [{person for person, _ in rows} for rows in classes.values()]
    secrets = [
        [{ill for key, ill in rows if key == person} for person in sorted({key for key, _ in rows})]
        for rows in classes.values()
    ]
    homes: dict[str, set] = {}
    for values, rows in classes.items():
        for person, _ in rows:
            homes.setdefault(person, set()).add(values)
    return {
        "rows": min(len(rows) for rows in classes.values()),
        "values": min(len({ill for _, ill in rows}) for rows in classes.values()),
        "persons": min(map(len, people)),
        "hitting": min(map(hitting, secrets)),
        "apart": sum(len(places) > 1 for places in homes.values()),
        "certain": sum(len(own) for own in secrets if hitting(own) == 1),
        "certain rows": sum(len(rows) for rows in classes.values() if len({ill for _, ill in rows}) == 1),
    }


def test_by_rows_they_keep_what_they_promise(masked: tuple[str, pl.DataFrame]) -> None:
    tool, table = masked
    wanted = counted(table)
    assert wanted["rows"] >= K
    found = shoal.verify(table.drop("pid"), {"k": K, "p_sensitive": {"p": 2}}, quasi=QUASI, sensitive="illness")
    assert [check.strongest for check in found.checks] == [wanted["rows"], wanted["values"]], tool
    told = shoal.attack(table.drop("pid"), quasi=QUASI, sensitive="illness")
    assert told.exposures[0].attack == "homogeneity"
    assert told.exposures[0].exposed == wanted["certain rows"]
    assert told.risks.prosecutor.highest == pytest.approx(1 / wanted["rows"])


def test_by_persons_the_same_is_said_of_every_tool(masked: tuple[str, pl.DataFrame]) -> None:
    tool, table = masked
    wanted = counted(table)
    found = shoal.verify(table, {"k": K, "p_sensitive": {"p": 2}}, quasi=QUASI, sensitive="illness", person="pid")
    assert found.persons == table["pid"].n_unique()
    if wanted["apart"]:
        assert any(f"The rows of {wanted['apart']:,} of" in problem for problem in found.problems), tool
        assert not found.passed
    else:
        assert [check.strongest for check in found.checks] == [wanted["persons"], wanted["hitting"]], tool
        assert found.passed == (wanted["persons"] >= K and wanted["hitting"] >= 2)
    told = shoal.attack(table, quasi=QUASI, sensitive="illness", person="pid")
    assert told.risks.prosecutor.highest == pytest.approx(1 / wanted["persons"])
    if not wanted["apart"]:
        assert told.exposures[0].exposed == wanted["certain"]
    # Only what was made of persons stands up to who knows them.
    assert (wanted["persons"] >= K) == (tool == "shoal, by persons")


def test_people_in_several_classes_are_found_in_each() -> None:
    """A patient who moved between two visits, in a table masked by rows: verify says that, attack looks in both classes."""
    table = pl.DataFrame(
        {
            "pid": [1, 2, 3, 1, 4, 5],
            "age": ["young"] * 3 + ["old"] * 3,
            "illness": ["flu", "cold", "flu", "HIV", "HIV", "HIV"],
        }
    )
    found = shoal.verify(table, {"k": 3}, quasi="age", sensitive="illness", person="pid")
    assert not found.passed
    assert "The rows of 1 of 5 persons are in different classes." in found.problems
    told = shoal.attack(table, quasi="age", sensitive="illness", person="pid")
    assert (told.records, told.risks.prosecutor.highest) == (6, pytest.approx(1 / 3))
    assert told.exposures[0].exposed == 3
    alone = table.with_columns(pid=pl.Series([1, 2, 3, 1, 1, 1]))
    assert shoal.attack(alone, quasi="age", sensitive="illness", person="pid").risks.prosecutor.highest == 1.0


def test_the_command_line_says_the_same(masked: tuple[str, pl.DataFrame], tmp_path: Path) -> None:
    tool, table = masked
    wanted = counted(table)
    table.write_csv(tmp_path / "masked.csv")
    config = tmp_path / "shoal.toml"
    roles = "".join(f'[attributes.{name}]\nrole = "quasi"\n' for name in QUASI)
    config.write_text(f'{roles}[attributes.illness]\nrole = "sensitive"\n[policy]\nk = {K}\n')
    runner = CliRunner()
    arguments = [str(tmp_path / "masked.csv"), "-c", str(config), "--person", "pid", "--json"]
    verified = runner.invoke(app, ["verify", *arguments])
    assert (verified.exception is None) == (tool == "shoal, by persons"), verified.exception
    told = json.loads(verified.stdout)
    assert (told["persons"], told["smallest"]) == (table["pid"].n_unique(), wanted["persons"])
    attacked = json.loads(runner.invoke(app, ["attack", *arguments]).stdout)
    assert attacked["risk"]["prosecutor"]["highest"] == pytest.approx(1 / wanted["persons"])
