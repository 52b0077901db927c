"""The command line from end to end: demo, anonymize, verify; reproducible, interruptible, quick to start."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from shoal.datasets import TAXONOMIES, hospital, hospital_config, taxonomy_path
from shoal.datasets.public import adult, adult_taxonomy_path, data_folder
from shoal.errors import ShoalError
from shoal.io.files import read_table, write_table

QUASI = ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"]
KILLS = 8


def have_data() -> bool:
    try:
        data_folder()
    except ShoalError:
        return False
    return True


needs_data = pytest.mark.skipif(not have_data(), reason="the reference data (SHOAL_DATA) is not on this machine")


def shoal(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shoal", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def hospital_folder(folder: Path, records: int = 400) -> Path:
    write_table(hospital(records, 5), folder / "patients.csv")
    for name in TAXONOMIES:
        shutil.copy(taxonomy_path(name), folder / f"{name}.csv")
    text = hospital_config("patients.csv").replace('algorithm = "auto"', 'algorithm = "mondrian"')
    (folder / "shoal.toml").write_text(text)
    return folder


def test_demo_leaves_a_verified_folder(tmp_path: Path) -> None:
    done = shoal("demo", "--records", "500", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["evidence"]["passed"] is True
    people = pl.read_csv(tmp_path / "demo" / "patients.csv")["patient"].n_unique()
    assert (told["evidence"]["records"], told["evidence"]["persons"]) == (500, people)
    again = shoal("verify", "demo/masked.csv", "-c", "demo/shoal.toml", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"Persons were counted: 500 rows of {people}" in again.stdout


@pytest.mark.parametrize(("records", "seed"), [(100, 7), (100, 1), (150, 2), (200, 7), (300, 7), (777, 3)])
def test_the_demo_is_exemplary_at_every_size(records: int, seed: int, tmp_path: Path) -> None:
    """Nothing refused, nothing accepted by hand, no harmless column that tells records apart, and classes of people.

    Among a hundred admissions some diagnoses occur once; a sensitive column is named then, with its figure.
    """
    from shoal.cli.demo import demo

    demo(tmp_path / "demo", records=records, seed=seed, as_json=False, quiet=True)
    told = json.loads((tmp_path / "demo" / "masked.csv.manifest.json").read_text())
    findings = told["published_as_it_is"]["findings"]
    assert {(one["column"], one["refused"]) for one in findings} <= {("diagnosis", False)}
    masked = pl.read_csv(tmp_path / "demo" / "masked.csv")
    assert not {"name", "record"} & set(masked.columns)
    quasi = ["age", "sex", "zip", "admitted", "occupation"]
    classes = masked.group_by(quasi).agg(pl.col("patient").n_unique(), pl.col("diagnosis").n_unique())
    assert classes["patient"].min() >= 5 and classes["diagnosis"].min() >= 3
    assert masked.select("patient", *quasi).unique()["patient"].is_unique().all()


@needs_data
def test_adult_from_csv_to_csv_and_one_cell_changed(tmp_path: Path) -> None:
    write_table(adult().select(QUASI), tmp_path / "adult.csv")
    lines = ['[source]\npath = "adult.csv"\n\n[policy]\nk = 10\n\n[method]\nalgorithm = "mondrian"\n']
    for name in QUASI:
        lines.append(f'\n[attributes.{name}]\nrole = "quasi"\n')
        if name != "age":
            taxonomy = tmp_path / f"{name}-taxonomy.csv"
            text = adult_taxonomy_path(name).read_text()
            if name == "native-country" and "Holand-Netherlands" not in text:
                text += "Holand-Netherlands;Europe;*\n"
            taxonomy.write_text(text)
            lines.append(f'taxonomy = "{taxonomy.name}"\n')
    (tmp_path / "shoal.toml").write_text("".join(lines))
    made = shoal("anonymize", "-o", "masked.csv", "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["evidence"]["records"] == 30162
    assert shoal("verify", "masked.csv", cwd=tmp_path).returncode == 0

    masked = read_table(tmp_path / "masked.csv")
    sizes = masked.group_by(QUASI).len().sort("len", *QUASI)
    victim = sizes.row(0, named=True)
    assert victim["len"] < 20
    rows = masked.with_row_index("i").join(sizes.head(1), on=QUASI, how="inner", nulls_equal=True)["i"]
    keep = 9  # leave the class one record short of k
    changed = masked.with_row_index("i").with_columns(
        sex=pl.when(pl.col("i").is_in(rows[keep:].implode())).then(pl.lit("changed")).otherwise(pl.col("sex"))
    )
    write_table(changed.drop("i"), tmp_path / "changed.csv")
    refused = shoal("verify", "changed.csv", cwd=tmp_path)
    assert refused.returncode == 1
    assert re.search(r"class \(age = .* with \d+ records? fails k_anonymity", refused.stderr)
    assert f"age = {victim['age']}" in refused.stderr


def test_the_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    hospital_folder(tmp_path)
    for seed in ["0", "4242"]:
        done = shoal("anonymize", "-o", f"masked{seed}.csv", cwd=tmp_path, PYTHONHASHSEED=seed)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "masked0.csv").read_bytes() == (tmp_path / "masked4242.csv").read_bytes()
    first, second = (json.loads((tmp_path / f"masked{s}.csv.manifest.json").read_text()) for s in ["0", "4242"])
    # The commitment to the original is under a random key each time.
    assert first.pop("input_commitment") != second.pop("input_commitment")
    assert first == second


def test_killed_at_any_moment_it_leaves_nothing_or_everything(tmp_path: Path) -> None:
    hospital_folder(tmp_path)
    started = time.monotonic()
    assert shoal("anonymize", "-o", "whole.csv", cwd=tmp_path).returncode == 0
    usual = time.monotonic() - started
    whole = (tmp_path / "whole.csv").read_bytes()
    draw = random.Random(7)
    finished = 0
    for attempt in range(KILLS):
        target = tmp_path / f"masked{attempt}.csv"
        process = subprocess.Popen(
            [sys.executable, "-m", "shoal", "anonymize", "-o", target.name],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(draw.uniform(0.3, 1.1) * usual)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if target.exists():
            finished += 1
            assert target.read_bytes() == whole
            assert (tmp_path / f"{target.name}.manifest.json").exists()
    assert finished < KILLS


def test_interrupted_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    hospital_folder(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "anonymize", "-o", "masked.csv"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.9)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    if process.returncode != 0:
        assert not (tmp_path / "masked.csv").exists()
        assert "Traceback" not in err or process.returncode < 0
        assert not list(tmp_path.glob(".shoal-*"))


@pytest.mark.parametrize(
    "command",
    ["demo", "init", "anonymize", "verify", "attack", "measure", "compare", "explore", "reproduce", "doctor"]
    + [f"taxonomy {word}" for word in ("check", "show", "build", "export")],
)
def test_help_teaches_with_an_example(command: str, tmp_path: Path) -> None:
    done = shoal(*command.split(), "--help", cwd=tmp_path, COLUMNS="200")
    assert done.returncode == 0
    assert f"Example: shoal {command}" in done.stdout


@pytest.mark.parametrize("statement", ["import shoal", "import shoal.cli"])
def test_nothing_heavy_is_imported_before_it_is_needed(statement: str) -> None:
    heavy = ["numba", "pandas", "sklearn", "matplotlib", "scipy", "altair", "polars", "sqlalchemy"]
    code = f"{statement}; import sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
