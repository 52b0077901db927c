"""The synthetic hospital hangs together, and the public tables are read as they are described."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from shoal import datasets
from shoal.datasets import public
from shoal.datasets.population import generate
from shoal.errors import ConfigError, InputError

SCHEMA = {
    "name": pl.String,
    "record": pl.String,
    "age": pl.Int64,
    "sex": pl.String,
    "zip": pl.String,
    "admitted": pl.Date,
    "occupation": pl.String,
    "diagnosis": pl.String,
    "stay": pl.Int64,
    "cost": pl.Float64,
}


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return datasets.hospital(120_000, seed=5)


@pytest.fixture(scope="module")
def taxonomy() -> pl.DataFrame:
    return _read_taxonomy("diagnosis", ["diagnosis", "group", "chapter", "root"])


@pytest.fixture
def data() -> Path:
    try:
        return datasets.data_folder()
    except InputError as reason:
        pytest.skip(str(reason))


# The hospital: reproducible


@pytest.mark.parametrize("n", [0, 1, 2, 1_000])
def test_any_size_has_the_same_columns(n: int) -> None:
    table = datasets.hospital(n)
    assert dict(table.schema) == SCHEMA
    assert table.height == n


def test_same_seed_same_table_and_other_seed_other_table() -> None:
    assert_frame_equal(datasets.hospital(3_000, seed=9), datasets.hospital(3_000, seed=9))
    assert not datasets.hospital(3_000, seed=9).equals(datasets.hospital(3_000, seed=10))


@pytest.mark.parametrize("chunk", [1, 7, 1_000, 4_999, 5_000])
def test_table_does_not_depend_on_chunks(chunk: int) -> None:
    n = 300 if chunk == 1 else 5_000
    assert_frame_equal(generate(n, seed=2, chunk=chunk), datasets.hospital(n, seed=2))


def test_same_bytes_in_processes_with_other_hash_seeds() -> None:
    program = "from shoal.datasets import hospital; print(hospital(2000, seed=4).write_csv())"
    source = str(Path(datasets.__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": source},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().decode() == datasets.hospital(2_000, seed=4).write_csv() + os.linesep


@pytest.mark.parametrize(("n", "seed"), [(-1, 0), (10, -3), (2.5, 0), (True, 0), ("10", 0)])
def test_impossible_sizes_and_seeds_are_refused(n: int, seed: int) -> None:
    with pytest.raises(ConfigError, match="whole number from 0 up"):
        datasets.hospital(n, seed)


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, shoal.datasets; print([m for m in ('polars', 'numpy') if m in sys.modules])"
    # An empty stand-in for the top package: what that one imports is not the matter here.
    stand_in = f"import sys, types; top = types.ModuleType('shoal'); top.__path__ = [{str(_package())!r}]; "
    done = subprocess.run(
        [sys.executable, "-c", stand_in + "sys.modules['shoal'] = top; " + program],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "[]"


# The hospital: people who come again


def test_readmissions_are_of_people_who_stay_who_they_are() -> None:
    table = datasets.hospital(20_000, seed=3, readmitted=0.3)
    assert table.columns == ["name", "record", "patient", *list(SCHEMA)[2:]]
    assert_frame_equal(table, datasets.hospital(20_000, seed=3, readmitted=0.3))
    people = table.group_by("patient").agg(
        pl.col("name", "sex", "occupation").n_unique(),
        (pl.col("age").max() - pl.col("age").min()).alias("older"),
        (pl.col("zip").n_unique() > 1).alias("moved"),
        pl.col("diagnosis").n_unique(),
        pl.len(),
    )
    assert 13_500 < people.height < 14_500
    assert people.select(pl.col("name", "sex", "occupation").max()).row(0) == (1, 1, 1)
    again = people.filter(pl.col("len") > 1)
    assert again["older"].max() <= 2 and 0.3 < (again["older"] > 0).mean() < 0.8
    assert 0.01 < again["moved"].mean() < 0.1
    assert again["diagnosis"].mean() > 1.5
    # What does not change about an admission is what it was without people.
    plain = datasets.hospital(20_000, seed=3)
    for name in ("record", "sex", "admitted", "diagnosis", "stay", "cost"):
        assert table[name].equals(plain[name])


@pytest.mark.parametrize("share", [-0.1, 1.0, True, "0.3"])
def test_impossible_shares_of_readmissions_are_refused(share: float) -> None:
    with pytest.raises(ConfigError, match="readmitted"):
        datasets.hospital(10, readmitted=share)


# The hospital: plausible


def test_ranges(table: pl.DataFrame) -> None:
    assert table["record"].n_unique() == table.height
    assert table["record"].str.contains(r"^R\d{7}$").all()
    assert table["age"].min() == 0
    assert 100 < table["age"].max() <= 105  # type: ignore[operator]
    assert set(table["sex"]) == {"female", "male"}
    assert table["zip"].drop_nulls().str.contains(r"^\d{5}$").all()
    assert table["admitted"].min() == date(2023, 1, 1)
    assert table["admitted"].max() == date(2024, 12, 31)
    assert table["stay"].min() == 0
    assert table["stay"].max() <= 365  # type: ignore[operator]
    assert table["cost"].min() > 0  # type: ignore[operator]
    assert table["cost"].is_nan().sum() == 0
    assert (table["cost"].drop_nulls() == table["cost"].drop_nulls().round(2)).all()
    assert table["name"].str.contains(r"^\w+ \w+$").all()
    assert table["name"].n_unique() > 30_000


def test_missing_shares(table: pl.DataFrame) -> None:
    shares = {column: table[column].null_count() / table.height for column in table.columns}
    expected = {"zip": 0.015, "occupation": 0.04, "diagnosis": 0.005, "cost": 0.02}
    for column, share in shares.items():
        assert share == pytest.approx(expected.get(column, 0.0), abs=0.003), column


def test_missing_values_have_their_reasons(table: pl.DataFrame) -> None:
    missing = pl.col("occupation").is_null().mean()
    old, young = (table.filter(who).select(missing).item() for who in (pl.col("age") >= 80, pl.col("age") < 80))
    assert old > 2 * young
    missing = pl.col("cost").is_null().mean()
    late = pl.col("admitted") >= date(2024, 12, 2)
    last, before = (table.filter(when).select(missing).item() for when in (late, ~late))
    assert last > 10 * before


def test_zip_codes_are_many_and_skewed(table: pl.DataFrame) -> None:
    counts = table["zip"].drop_nulls().value_counts(sort=True)["count"]
    assert 500 < len(counts) < 3_000
    assert counts.head(len(counts) // 10).sum() > 0.4 * counts.sum()
    regions = table["zip"].drop_nulls().str.head(2).value_counts(sort=True)["count"]
    assert len(regions) == 16
    assert regions[0] > 5 * regions[-1]


def test_admissions_follow_week_and_season(table: pl.DataFrame) -> None:
    weekdays = table.group_by(pl.col("admitted").dt.weekday()).len().sort("admitted")["len"]
    assert weekdays[0] > 1.6 * weekdays[6]
    months = table.group_by(pl.col("admitted").dt.month()).len().sort("admitted")["len"]
    assert months[0] > 1.1 * months[6]
    assert table["admitted"].n_unique() == 731


def test_occupation_fits_the_age(table: pl.DataFrame) -> None:
    def ages(occupation: str) -> pl.Series:
        return table.filter(pl.col("occupation") == occupation)["age"]

    assert ages("child").max() <= 6  # type: ignore[operator]
    assert ages("pupil").is_between(6, 19).all()
    assert ages("student").is_between(17, 33).all()
    assert ages("retired").min() > 50  # type: ignore[operator]
    assert ages("engineer").min() >= 22  # type: ignore[operator]
    working = table.filter(~pl.col("occupation").is_in(["child", "pupil", "student", "retired"]))
    assert working["age"].is_between(16, 84).all()
    assert table.filter(pl.col("age") >= 85)["occupation"].drop_nulls().unique().to_list() == ["retired"]


def test_occupation_fits_sex_and_place(table: pl.DataFrame) -> None:
    builders = table.filter(pl.col("occupation") == "construction worker")
    assert (builders["sex"] == "male").mean() > 0.85  # type: ignore[operator]
    farmers = table.filter(pl.col("occupation") == "farm worker")["zip"].drop_nulls().str.head(2)
    everybody = table["zip"].drop_nulls().str.head(2)
    assert (farmers == "10").mean() < 0.2 * (everybody == "10").mean()  # type: ignore[operator]


def test_pregnancy_only_for_women_of_plausible_age(table: pl.DataFrame, taxonomy: pl.DataFrame) -> None:
    pregnant = table.join(taxonomy, on="diagnosis").filter(pl.col("chapter") == "Pregnancy")
    assert pregnant.height > 1_000
    assert pregnant["sex"].unique().to_list() == ["female"]
    assert pregnant["age"].is_between(15, 49).all()


def test_diagnosis_fits_age_and_sex(table: pl.DataFrame, taxonomy: pl.DataFrame) -> None:
    joined = table.join(taxonomy, on="diagnosis")
    assert joined.filter(pl.col("chapter") == "Newborn")["age"].unique().to_list() == [0]
    prostate = joined.filter(pl.col("diagnosis").is_in(["Prostate cancer", "Enlarged prostate"]))
    assert prostate["sex"].unique().to_list() == ["male"]
    assert prostate["age"].min() >= 30  # type: ignore[operator]
    assert joined.filter(pl.col("diagnosis") == "Ovarian cancer")["sex"].unique().to_list() == ["female"]
    assert joined.filter(pl.col("diagnosis") == "Breast cancer")["sex"].n_unique() == 2
    assert joined.filter(pl.col("diagnosis") == "Dementia")["age"].min() >= 55  # type: ignore[operator]
    assert joined.filter(pl.col("diagnosis") == "Bronchiolitis")["age"].max() <= 5  # type: ignore[operator]


def test_diagnosis_fits_the_season(table: pl.DataFrame) -> None:
    def cases(diagnosis: str, months: list[int]) -> int:
        return table.filter((pl.col("diagnosis") == diagnosis) & pl.col("admitted").dt.month().is_in(months)).height

    assert cases("Influenza", [1, 2, 3]) > 10 * cases("Influenza", [7, 8, 9])
    assert cases("Dehydration", [6, 7, 8]) > 3 * cases("Dehydration", [12, 1, 2])


def test_stay_depends_on_diagnosis_and_age_and_has_outliers(table: pl.DataFrame) -> None:
    median = dict(table.drop_nulls("diagnosis").group_by("diagnosis").agg(pl.col("stay").median()).iter_rows())
    assert median["Schizophrenia"] > 5 * median["Hernia"]
    pneumonia = table.filter(pl.col("diagnosis") == "Pneumonia")
    assert (
        pneumonia.filter(pl.col("age") >= 85)["stay"].mean()
        > 1.15 * pneumonia.filter(pl.col("age") < 50)["stay"].mean()  # type: ignore[operator]
    )
    assert table["stay"].quantile(0.999) > 20 * table["stay"].median()  # type: ignore[operator]


def test_cost_depends_on_stay_and_diagnosis_and_has_a_heavy_tail(table: pl.DataFrame) -> None:
    known = table.drop_nulls(["cost", "diagnosis"])
    assert known.select(pl.corr("stay", "cost", method="spearman")).item() > 0.5
    same_stay = known.filter(pl.col("stay") == 5).group_by("diagnosis").agg(pl.col("cost").median())
    cost = dict(same_stay.iter_rows())
    assert cost["Heart attack"] > 2 * cost["Gastroenteritis"]
    median, rare = known["cost"].median(), known["cost"].quantile(0.999)
    assert rare > 15 * median  # type: ignore[operator]
    assert known["cost"].max() > 3 * rare  # type: ignore[operator]


# Its taxonomies and its configuration


@pytest.mark.parametrize("name", datasets.TAXONOMIES)
def test_taxonomy_covers_exactly_the_values(name: str, table: pl.DataFrame) -> None:
    leaves = _read_taxonomy(name).to_series(0)
    assert leaves.n_unique() == len(leaves)
    assert set(leaves) == set(table[name].drop_nulls())


@pytest.mark.parametrize(("name", "levels"), [("diagnosis", 4), ("occupation", 3)])
def test_taxonomy_is_a_tree_with_one_root(name: str, levels: int) -> None:
    rows = _read_taxonomy(name)
    assert rows.width == levels
    assert rows.to_series(-1).n_unique() == 1
    for child, parent in zip(rows.columns, rows.columns[1:], strict=False):
        parents = rows.group_by(child).agg(pl.col(parent).n_unique())
        assert (parents[parent] == 1).all(), child
    labels = [value for column in rows.columns for value in rows[column].unique()]
    assert len(labels) == len(set(labels)), "a label stands on two levels"


def test_unknown_taxonomy_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'diagnosis'"):
        datasets.taxonomy_path("diagnoses")


@pytest.mark.parametrize("path", ["patients.csv", 'C:\\new "old"\\Ärzte 🐟.csv'])
def test_config_declares_every_column(path: str, table: pl.DataFrame) -> None:
    config = tomllib.loads(datasets.hospital_config(path))
    assert config["source"]["path"] == path
    attributes = config["attributes"]
    assert list(attributes) == table.columns
    roles = {column: attribute["role"] for column, attribute in attributes.items()}
    assert [column for column in roles if roles[column] == "identifier"] == ["name", "record"]
    assert [column for column in roles if roles[column] == "sensitive"] == ["diagnosis"]
    assert [column for column in roles if roles[column] == "other"] == ["stay", "cost"]
    assert list(roles.values()).count("quasi") == 5
    assert config["policy"] == {"k": 5, "p_sensitive": {"p": 3}}
    files = {a["taxonomy"] for a in attributes.values() if isinstance(a.get("taxonomy"), str)}
    assert files == {datasets.taxonomy_path(name).name for name in datasets.TAXONOMIES}


# Public tables


@pytest.mark.parametrize(
    ("part", "complete", "rows"),
    [
        ("train", True, 30_162),
        ("test", True, 15_060),
        ("both", True, 45_222),
        ("train", False, 32_561),
        ("test", False, 16_281),
    ],
)
def test_adult_counts(data: Path, part: str, complete: bool, rows: int) -> None:
    table = datasets.adult(part, complete)  # type: ignore[arg-type]
    assert table.shape == (rows, 15)
    assert set(table["income"]) == {"<=50K", ">50K"}
    assert table["age"].dtype == pl.Int64
    assert "?" not in set(table["workclass"])
    assert (table["occupation"].null_count() == 0) == complete


def test_adult_taxonomies_cover_adult(data: Path) -> None:
    table = datasets.adult("both")
    for attribute in (
        "workclass",
        "education",
        "marital-status",
        "native-country",
        "occupation",
        "race",
        "sex",
    ):
        path = datasets.adult_taxonomy_path(attribute)
        leaves = set(pl.read_csv(path, separator=";", has_header=False).to_series(0))
        assert set(table[attribute]) <= leaves, attribute
    assert datasets.adult_taxonomy_path("income").name == "salary-class.csv"
    with pytest.raises(InputError, match="did you mean 'education'"):
        datasets.adult_taxonomy_path("eduction")


def test_census_counts(data: Path) -> None:
    table = datasets.census()
    assert table.shape == (1_080, 13)
    assert table.null_count().sum_horizontal().item() == 0
    assert set(table.dtypes) == {pl.Int64}


ADULT_LINE = "25, ?, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Male, 0, 0, 40, Peru, <=50K."


def test_adult_reads_the_original_layout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _write(tmp_path / "adult" / "adult.test", f"|1x3 Cross validator\n{ADULT_LINE}\n\n")
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    table = datasets.adult("test", complete=False)
    assert table.height == 1
    assert table.row(0, named=True) | {"age": 0} == {
        "age": 0,
        "workclass": None,
        "fnlwgt": 226802,
        "education": "11th",
        "education-num": 7,
        "marital-status": "Never-married",
        "occupation": "Sales",
        "relationship": "Own-child",
        "race": "Black",
        "sex": "Male",
        "capital-gain": 0,
        "capital-loss": 0,
        "hours-per-week": 40,
        "native-country": "Peru",
        "income": "<=50K",
    }
    assert datasets.adult("test").height == 0


@pytest.mark.parametrize(
    "text", ["", "1, 2, 3\n", ADULT_LINE + ", more\n", ADULT_LINE.replace("226802", "many") + "\n"]
)
def test_another_file_is_not_taken_for_adult(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _write(tmp_path / "adult" / "adult.data", text)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"adult\.data"):
        datasets.adult()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", ",".join("abcdefghijklm") + "\n" + "x," * 12 + "x\n"])
def test_another_file_is_not_taken_for_census(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _write(tmp_path / "casc" / "census.csv", text)
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"census\.csv"):
        datasets.census()


def test_unknown_part_of_adult_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'train'"):
        datasets.adult("trian")  # type: ignore[arg-type]


def test_data_folder_is_looked_for_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here, checkout, named = tmp_path / "a" / "here", tmp_path / "b" / "checkout", tmp_path / "named"
    for folder in (here, checkout, named):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.delenv("SHOAL_DATA", raising=False)
    monkeypatch.setattr(public, "__file__", str(checkout / "src" / "shoal" / "datasets" / "public.py"))
    with pytest.raises(InputError, match=r"set SHOAL_DATA .* adult/adult\.data"):
        datasets.data_folder()
    (tmp_path / "b" / "shared" / "data").mkdir(parents=True)
    assert datasets.data_folder() == tmp_path / "b" / "shared" / "data"
    (tmp_path / "a" / "shared" / "data").mkdir(parents=True)
    assert datasets.data_folder() == tmp_path / "a" / "shared" / "data"
    monkeypatch.setenv("SHOAL_DATA", str(named))
    assert datasets.data_folder() == named
    with pytest.raises(InputError, match=r"casc/census\.csv"):
        datasets.census()
    monkeypatch.setenv("SHOAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="not a folder"):
        datasets.data_folder()


def _package() -> Path:
    return Path(datasets.__file__).parents[1]


def _read_taxonomy(name: str, columns: list[str] | None = None) -> pl.DataFrame:
    return pl.read_csv(datasets.taxonomy_path(name), separator=";", has_header=False, new_columns=columns)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
