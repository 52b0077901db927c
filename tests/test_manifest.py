"""The manifest proves and does not tell: two originals with the same masked table have the same manifest, and guesses find nothing."""

from __future__ import annotations

import hashlib
import json
import re
import stat

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.app import app
from shoal.errors import VerificationError
from shoal.manifest import fingerprint, manifest_path, secret_path

SCHEMA = {
    "age": {"role": "quasi"},
    "zip": {"role": "quasi", "taxonomy": {"prefix": [3, 0]}},
    "ill": {"role": "sensitive"},
}


def table(hidden: int = 0) -> pl.DataFrame:
    """Classes of four; what lies strictly inside an interval, or under a prefix that stays, differs with `hidden`."""
    rng = np.random.default_rng(0)
    ages = [20, 22 + hidden, 23, 25, 40, 42, 44 - hidden, 45, 70, 71, 72, 75]
    zips = ["41076", f"4107{hidden}", "41075", "41079"] * 3
    return pl.DataFrame({"age": ages, "zip": zips, "ill": rng.choice(["flu", "cold"], 12)})


def released(frame, folder, **settings):
    release = shoal.anonymize(
        shoal.Microdata.from_frame(frame, SCHEMA),
        shoal.KAnonymity(4),
        algorithm="mondrian",
        refine=False,
        seed=3,
        **settings,
    )
    target = release.write(folder / "masked.csv")
    return release, target, json.loads(manifest_path(target).read_text())


@pytest.mark.parametrize("intervals", ["text", "columns"])
def test_two_originals_with_the_same_masked_table_publish_the_same(tmp_path, intervals):
    told = []
    for hidden in (0, 1):
        folder = tmp_path / str(hidden)
        folder.mkdir()
        _, target, manifest = released(table(hidden), folder, intervals=intervals)
        manifest.pop("input_commitment")
        told.append((target.read_bytes(), manifest))
    assert not table(0).equals(table(1))
    assert told[0] == told[1]


def test_the_order_of_the_records_does_not_matter(tmp_path):
    frame = table()
    found = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        shuffled = frame[np.random.default_rng(seed).permutation(frame.height)]
        found.append(released(shuffled, folder)[1].read_bytes())
    assert found[0] == found[1]
    other = shoal.anonymize(
        shoal.Microdata.from_frame(frame, SCHEMA), shoal.KAnonymity(4), algorithm="mondrian", refine=False, seed=4
    )
    assert other.masked.write_csv().encode() != found[0]


def test_guessing_the_original_finds_nothing_to_compare_with(tmp_path):
    """An intruder who knows all but one age tries them all; a plain digest of the right guess would be found."""
    frame = table()
    _, target, manifest = released(frame, tmp_path)
    text = manifest_path(target).read_text() + target.read_text()
    digests = set(re.findall(r"[0-9a-f]{32,}", text))
    assert manifest["input_commitment"] in digests
    for age in range(20, 26):
        ages = frame["age"].to_list()
        ages[1] = age
        guess = frame.with_columns(age=pl.Series(ages))
        print_ = fingerprint(guess)
        for content in (
            print_,
            print_ + b"input",
            print_ + b"order",
            guess.write_csv().encode(),
            guess.write_json().encode(),
        ):
            assert hashlib.sha256(content).hexdigest() not in digests
            assert hashlib.md5(content).hexdigest() not in digests
        assert print_.hex() not in digests


def test_no_published_figure_solves_for_a_hidden_number(tmp_path):
    """Every number of the manifest is the same for all candidates of a hidden age: nothing can be solved for it."""
    figures = set()
    for hidden in (0, 1):
        folder = tmp_path / str(hidden)
        folder.mkdir()
        release, _, manifest = released(table(hidden), folder)
        figures.add(json.dumps(manifest["measures"], sort_keys=True))
        assert "sse" not in manifest["measures"] and "notes" not in manifest and "seed" not in manifest["settings"]
        assert release.measures.sse > 0
    assert len(figures) == 1


def test_the_secret_half_is_the_owners_alone_and_makes_the_release_again(tmp_path):
    frame = table()
    frame.write_csv(tmp_path / "people.csv")
    config = tmp_path / "shoal.toml"
    config.write_text(
        '[source]\npath = "people.csv"\n[attributes.age]\nrole = "quasi"\n[attributes.zip]\nrole = "quasi"\nkind = "category"\n'
        'taxonomy = { prefix = [3, 0] }\n[attributes.ill]\nrole = "sensitive"\n[policy]\nk = 4\n[method]\nalgorithm = "mondrian"\nseed = 9\n'
    )
    masked = tmp_path / "masked.csv"
    runner = CliRunner()
    made = runner.invoke(app, ["anonymize", "-c", str(config), "-o", str(masked), "--quiet"])
    assert made.exit_code == 0, made.output
    secret = secret_path(masked)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert json.loads(secret.read_text())["settings"]["seed"] == 9
    arguments = ["verify", str(masked), "-c", str(config), "--manifest", "--secret", str(secret), "--quiet"]
    assert runner.invoke(app, arguments).exit_code == 0
    # Another original: the commitment does not open.
    frame.with_columns(age=pl.col("age") + 1).write_csv(tmp_path / "people.csv")
    with pytest.raises(VerificationError, match="commitment"):
        raise runner.invoke(app, arguments).exception


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (lambda told: told.update(output_sha256="0" * 64), "another file"),
        (lambda told: told.update(policy={"k": 9}), "another policy"),
        (lambda told: told["evidence"].update(smallest=9), "smallest"),
        (lambda told: told["evidence"]["checks"][0].update(strongest=9.0), "other checks"),
        (lambda told: told["evidence"].update(checks=[]), "other checks"),
        (lambda told: told["measures"].update(classes=1), "classes"),
        (lambda told: told.pop("evidence"), "no evidence"),
    ],
)
def test_a_manifest_that_claims_something_else_is_refused(tmp_path, forge, sentence):
    released(table(), tmp_path)
    masked, config = tmp_path / "masked.csv", tmp_path / "shoal.toml"
    config.write_text(
        '[attributes.age]\nrole = "quasi"\n[attributes.zip]\nrole = "quasi"\nkind = "category"\ntaxonomy = { prefix = [3, 0] }\n'
        '[attributes.ill]\nrole = "sensitive"\n[policy]\nk = 4\n'
    )
    told = json.loads(manifest_path(masked).read_text())
    forge(told)
    manifest_path(masked).write_text(json.dumps(told))
    found = CliRunner().invoke(app, ["verify", str(masked), "-c", str(config), "--manifest", "--quiet"])
    assert isinstance(found.exception, VerificationError) and sentence in str(found.exception)
