"""`shoal taxonomy`: all gaps at once, trees with counts, and automatic ones as files that change nothing until they are edited."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result
from tests.cli.errors import call, captured
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.taxonomy import Taxonomy

JOBS = [
    f"{trade} {rank}"
    for trade in ("baker", "cook", "farmer", "nurse", "tailor", "welder")
    for rank in ("I", "II", "III", "IV", "V")
]


def table(n: int = 400) -> pl.DataFrame:
    random = np.random.default_rng(8)
    trade = random.integers(0, 6, n)
    return pl.DataFrame(
        {
            "age": 20 + 8 * trade + random.integers(0, 9, n),
            "job": [
                JOBS[5 * t + r] if i % 40 else None
                for i, (t, r) in enumerate(zip(trade, random.integers(0, 5, n), strict=True))
            ],
            "illness": random.choice(["flu", "cold", "ulcer", "gout"], n),
        }
    )


CONFIG = """
[source]
path = "people.csv"
[attributes.age]
role = "quasi"
kind = "number"
[attributes.job]
role = "quasi"
kind = "category"
taxonomy = "{taxonomy}"
[attributes.illness]
role = "sensitive"
[policy]
k = 8
[method]
algorithm = "mondrian"
refine = false
seed = 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table().write_csv(tmp_path / "people.csv")
    (tmp_path / "shoal.toml").write_text(CONFIG.format(taxonomy="auto"))
    return tmp_path


def run(folder: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(
        app, ["taxonomy", *map(str, words), "-c", str(folder / "shoal.toml")], env={"COLUMNS": "200"}
    )


def done(folder: Path, *words: str | Path) -> str:
    result = run(folder, *words)
    assert result.exception is None, result.exception
    return result.stdout


def release(folder: Path, name: str) -> pl.DataFrame:
    told = CliRunner().invoke(app, ["anonymize", "-c", str(folder / "shoal.toml"), "-o", str(folder / name), "--quiet"])
    assert told.exception is None, told.exception
    return pl.read_csv(folder / name)


def test_an_automatic_taxonomy_exported_and_read_back_gives_the_same_bytes(folder: Path) -> None:
    release(folder, "before.csv")
    assert 'taxonomy = "taxonomies/job.csv" under [attributes.job]' in done(
        folder, "export", "-o", folder / "taxonomies"
    )
    (folder / "shoal.toml").write_text(CONFIG.format(taxonomy="taxonomies/job.csv"))
    release(folder, "after.csv")
    assert (folder / "after.csv").read_bytes() == (folder / "before.csv").read_bytes()


def test_every_published_label_is_found_in_the_exported_file(folder: Path) -> None:
    """What nobody could decode, such as {baker I, baker II, +23}: its line says which values it stands for."""
    masked = release(folder, "masked.csv")
    done(folder, "export", "-o", folder / "taxonomies")
    tree = Taxonomy.read(folder / "taxonomies" / "job.csv")
    published = set(masked["job"].drop_nulls().unique())
    assert any("+" in label for label in published)
    assert published <= set(tree.labels)
    for label in published - {"*"}:
        node = tree.node(label)
        assert set(tree.labels[tree.first[node] : tree.last[node] + 1]) <= set(JOBS)
        # As many as the label counts: those it names and those it does not.
        counted = label.removeprefix("{").removesuffix("}").split(", ")
        more = int(counted[-1][1:]) - 1 if counted[-1].startswith("+") else 0
        assert int(tree.leaf_counts[node]) == len(counted) + more


def test_the_owner_s_half_keeps_what_the_labels_of_automatic_groups_stand_for(folder: Path) -> None:
    masked = release(folder, "masked.csv")
    groups = json.loads((folder / "masked.csv.secret.json").read_text())["groups"]
    assert set(groups) == {"job"}
    assert set(masked["job"].drop_nulls()) - {"*"} - set(JOBS) <= set(groups["job"])
    assert all(set(members) <= set(JOBS) for members in groups["job"].values())
    # What is published says nothing that the masked table does not say.
    assert "groups" not in json.loads((folder / "masked.csv.manifest.json").read_text())


def test_an_edit_changes_the_release_where_it_was_edited_alone(folder: Path) -> None:
    before = release(folder, "before.csv")
    done(folder, "export", "-o", folder / "taxonomies")
    file = folder / "taxonomies" / "job.csv"
    label = next(one for one in before["job"].drop_nulls().unique().sort() if "+" in one and one.startswith("{"))
    text = file.read_text()
    file.write_text(text.replace(label, "people who stand"))
    (folder / "shoal.toml").write_text(CONFIG.format(taxonomy="taxonomies/job.csv"))
    after = release(folder, "after.csv")
    assert sorted(after["job"].fill_null("").to_list()) == sorted(
        before["job"].fill_null("").replace(label, "people who stand").to_list()
    )
    kept = [frame.filter(~pl.col("job").is_in([label, "people who stand"])).sort(pl.all()) for frame in (before, after)]
    assert kept[0].equals(kept[1])


@pytest.mark.unshown
def test_all_gaps_in_one_message_with_counts(folder: Path) -> None:
    known = [job for job in JOBS if not job.startswith(("nurse", "cook V"))]
    (folder / "job.csv").write_text("".join(f"{job};{job.split()[0]};any\n" for job in known))
    (folder / "shoal.toml").write_text(CONFIG.format(taxonomy="job.csv"))
    counts = table()["job"].value_counts().filter(~pl.col("job").is_in([*known, None]) & pl.col("job").is_not_null())
    refused = run(folder, "check")
    assert isinstance(refused.exception, VerificationError)
    told = str(refused.exception)
    assert f"does not know {len(counts)} values" in told
    assert "nurse" not in told
    assert "the value of record" in told
    with shoal.errors.show_values(True):
        shown = str(run(folder, "check").exception)
    for job, count in counts.iter_rows():
        assert f"'{job}' ({count} record{'s' if count != 1 else ''})" in shown


def test_the_message_comes_once_and_ends_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "job.csv").write_text("baker I;any\n")
    (folder / "shoal.toml").write_text(CONFIG.format(taxonomy="job.csv"))
    with captured() as (_, err):
        assert call(["taxonomy", "check", "-c", str(folder / "shoal.toml"), "--quiet"]) == 1
    assert len(err.getvalue().splitlines()) == 1
    assert "does not know 29 values" in err.getvalue()


def test_a_taxonomy_without_gaps_passes(folder: Path) -> None:
    assert "Every value is known" in done(folder, "check")
    told = json.loads(run(folder, "check", "--json", "--quiet").stdout)
    assert told["taxonomies"][0]["unknown"] == []


def test_the_tree_has_counts_that_add_up(folder: Path) -> None:
    told = json.loads(run(folder, "show", "job", "--json", "--quiet").stdout)["taxonomies"][0]
    nodes = told["nodes"]
    assert nodes[0][1] == 390  # ten of four hundred have no job
    leaves = {label: records for label, records, _ in nodes if label in JOBS}
    assert leaves == {job: count for job, count in table()["job"].value_counts().iter_rows() if job is not None}
    # The children of every node have its records between them.
    for place, (_, records, depth) in enumerate(nodes):
        below = []
        for _, count, level in nodes[place + 1 :]:
            if level <= depth:
                break
            if level == depth + 1:
                below.append(count)
        assert not below or sum(below) == records
    shallow = done(folder, "show", "job", "--depth", "1")
    assert "baker III  " not in shallow


def test_a_rule_makes_a_file_that_can_be_used(folder: Path) -> None:
    done(folder, "build", "job", "--rule", "prefix=4,0", "-o", folder / "job.csv")
    tree = Taxonomy.read(folder / "job.csv")
    assert tree.path(tree.code("cook I"))[1:] == ("cook******", "**********")
    assert isinstance(run(folder, "build", "job", "-o", folder / "job.csv").exception, InputError)
    done(folder, "build", "age", "--rule", "intervals=5,10", "-o", folder / "age.csv")
    assert "[20, 24]" in (folder / "age.csv").read_text()
    (folder / "shoal.toml").write_text(CONFIG.format(taxonomy="job.csv"))
    assert set(release(folder, "masked.csv")["job"].drop_nulls()) <= set(tree.labels)


@pytest.mark.parametrize("rule", ["prefix", "prefix=x", "edges=1,2", "dates=week", "intervals="])
def test_a_rule_that_is_none_is_refused_in_a_sentence(folder: Path, rule: str) -> None:
    refused = run(folder, "build", "job", "--rule", rule, "-o", folder / "job.csv")
    assert isinstance(refused.exception, shoal.ShoalError)
    assert str(refused.exception).endswith(".")
    assert not (folder / "job.csv").exists()


def test_columns_without_a_taxonomy_and_files_that_are_there(folder: Path) -> None:
    assert isinstance(run(folder, "show", "age").exception, ConfigError)
    assert isinstance(run(folder, "build", "height", "-o", folder / "h.csv").exception, ConfigError)
    done(folder, "export", "-o", folder / "t")
    before = (folder / "t" / "job.csv").read_bytes()
    assert isinstance(run(folder, "export", "-o", folder / "t").exception, InputError)
    assert (folder / "t" / "job.csv").read_bytes() == before
    done(folder, "export", "-o", folder / "t", "--force")


def test_labels_that_no_file_can_hold_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    frame = table().with_columns(job=pl.col("job").fill_null("none") + " ")
    frame.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "shoal.toml").write_text(CONFIG.format(taxonomy="auto").replace("people.csv", "people.parquet"))
    refused = run(tmp_path, "export", "-o", tmp_path / "t")
    assert isinstance(refused.exception, InputError)
    assert "blank" in str(refused.exception)
    assert list((tmp_path / "t").iterdir()) == []
