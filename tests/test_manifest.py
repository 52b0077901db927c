"""The manifest proves and does not tell: two originals with the same masked table have the same manifest, and guesses find nothing."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from typer.testing import CliRunner

import shoal
from shoal.claims import Judged, broken_claims
from shoal.cli.app import app
from shoal.errors import VerificationError
from shoal.io.fingerprint import fingerprint
from shoal.manifest import manifest_path, secret_path
from shoal.measures.loss import measure

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


def test_what_is_most_common_does_not_tell_of_classes_that_nobody_sees(tmp_path):
    """Two classes that publish the same are one to whoever looks at the table, and to whoever reads the manifest."""
    frame = pl.DataFrame({"job": list("aaabaaac"), "sex": list("fffmffff"), "ill": ["flu", "cold"] * 4})
    schema = {"job": {"role": "quasi"}, "sex": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    data = shoal.Microdata.from_frame(frame, schema)
    release = shoal.anonymize(data, shoal.KAnonymity(4), algorithm="mdav", refine=False, recode="microaggregate")
    assert release.measures.classes == 2 and release.evidence.classes == 1
    assert release.manifest["measures"] == {"classes": 1, "smallest_class": 8, "largest_class": 8}


@pytest.mark.parametrize("name", ["masked.csv", "masked.parquet"])
def test_spaces_around_a_value_tell_nobody_apart(tmp_path, name):
    """Readers of text files drop them; the manifest says the same of the column whatever file is written."""
    ill = ["flu", "flu ", " cold", "cold", "gout", "HIV", *["ulcer"] * 18]
    frame = pl.DataFrame({"age": [20, 30] * 12, "ill": ill})
    schema = {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    data = shoal.Microdata.from_frame(frame, schema)
    policy = shoal.Policy((shoal.KAnonymity(3),))
    release = shoal.anonymize(data, policy, algorithm="mondrian", refine=False)
    target = release.write(tmp_path / name)
    told = json.loads(manifest_path(target).read_text())
    assert [(one["column"], one["records"]) for one in told["published_as_it_is"]["findings"]] == [("ill", 2)]
    assert not list(broken_claims(told, Judged.of(target, policy, data.schema)))


def test_suppressed_records_are_a_class_of_the_file_and_none_of_the_measures(tmp_path):
    far = {"age": [150, 10, 99, 130], "zip": ["99999", "11111", "77777", "55555"], "ill": ["flu", "cold"] * 2}
    near = {"age": [30] * 12, "zip": ["41076"] * 12, "ill": ["flu", "cold"] * 6}
    data = shoal.Microdata.from_frame(pl.concat([pl.DataFrame(near), pl.DataFrame(far)]), SCHEMA)
    release = shoal.anonymize(data, shoal.KAnonymity(4), algorithm="datafly", refine=False, suppress=0.25)
    target = release.write(tmp_path / "masked.csv")
    assert release.measures.suppressed == 4 and release.evidence.classes == release.measures.classes + 1
    told = Judged.of(target, release.policy, release.data.schema)
    manifest = json.loads(manifest_path(target).read_text())
    assert list(broken_claims(manifest, told)) == []
    for left_out in (0, 5):
        manifest["measures"]["suppressed"] = left_out
        assert any("The manifest says" in one for one in broken_claims(manifest, told))


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


INCOMES = [20_100, 21_347, 23_050, 25_900, 40_020, 42_480, 44_010, 45_900, 70_300, 71_150, 72_075, 75_010]
HIDDEN = 1
"""The record whose income an intruder wants, who knows all others."""


def solved(told, partition, low, high):
    """The incomes strictly inside the published interval that agree with every published loss; None where all of them do.

    What SciPy is asked for are the roots of (loss with this income) − (published loss), one loss after the other.
    """

    def losses(income):
        guess = pl.DataFrame({"income": [float(x) if i != HIDDEN else float(income) for i, x in enumerate(INCOMES)]})
        data = shoal.Microdata.from_frame(guess, {"income": {"role": "quasi"}})
        return measure(data, partition, 4).to_dict()

    tried = np.linspace(low, high, 31)[1:-1]
    found = [losses(income) for income in tried]
    candidates = None
    for name, figure in told.items():
        if not isinstance(figure, int | float):
            continue
        exact = isinstance(figure, int) or figure != round(figure, 2)
        miss = [one[name] - figure for one in found]
        if all(abs(difference) <= (1e-12 if exact else 0.005) for difference in miss):
            continue  # whatever the income is, this is what would stand there
        roots = [
            brentq(lambda income, name=name, figure=figure: losses(income)[name] - figure, *ends, xtol=1e-6)
            for ends, values in zip(pairwise(tried), pairwise(miss), strict=True)
            if values[0] * values[1] <= 0
        ]
        candidates = roots if candidates is None else [x for x in candidates if any(abs(x - r) < 0.01 for r in roots)]
    return candidates


def test_a_solver_finds_no_income_in_what_is_published_and_finds_it_where_the_sum_of_squares_is(tmp_path):
    """With all but one income known, the sum of squares has one unknown in it; nothing that is published has any."""
    frame = pl.DataFrame({"income": [float(income) for income in INCOMES]})
    data = shoal.Microdata.from_frame(frame, {"income": {"role": "quasi"}})
    release = shoal.anonymize(data, shoal.KAnonymity(4), algorithm="mondrian", refine=False, order="keep")
    target = release.write(tmp_path / "masked.csv")
    told = json.loads(manifest_path(target).read_text())["measures"]
    low, high = (float(end) for end in re.findall(r"\d+", pl.read_csv(target)["income"][HIDDEN]))
    assert low < INCOMES[HIDDEN] < high
    assert len(told) > 5 and solved(told, release.partition, low, high) is None
    doctored = {**told, "sse": release.measures.sse}
    found = solved(doctored, release.partition, low, high)
    assert len(found) <= 2 and any(abs(income - INCOMES[HIDDEN]) < 0.5 for income in found)


ZIPS = {
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 0]}},
    "ward": {"role": "other", "accept": "wards are public"},
    "ill": {"role": "sensitive"},
}


def wards(permuted):
    """Eighty records in two regions; the ward determines the zip, or has nothing to do with it below the region."""
    rows = np.arange(80)
    last = np.random.default_rng(4).permutation(10)[rows % 10] if permuted else rows % 10
    last = np.where(permuted & (rows % 20 >= 10), rows * 7 % 10, last)
    zips = [f"41{region}{digit:02d}" for region, digit in zip(rows // 40, last, strict=True)]
    names = [f"ward {region}{digit}" for region, digit in zip(rows // 40, rows % 10, strict=True)]
    return pl.DataFrame({"zip": zips, "ward": names, "ill": np.array(["flu", "cold", "ulcer"])[rows * 5 % 3]})


def told_twice(tmp_path, frames, schema):
    """Masked bytes and manifest of each original, but for the commitment."""
    told = []
    for number, frame in enumerate(frames):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = shoal.Microdata.from_frame(frame, schema)
        release = shoal.anonymize(data, shoal.KAnonymity(9), algorithm="mondrian", refine=False, seed=3)
        target = release.write(folder / "masked.csv")
        manifest = json.loads(manifest_path(target).read_text())
        manifest.pop("input_commitment")
        told.append((target.read_bytes(), json.dumps(manifest, sort_keys=True), release))
    return told


def test_what_a_column_tells_about_an_exact_quasi_identifier_is_told_to_the_owner_alone(tmp_path):
    (masked, manifest, release), (again, other, second) = told_twice(tmp_path, (wards(False), wards(True)), ZIPS)
    assert masked == again and manifest == other
    assert "410**" in masked.decode() and json.loads(manifest)["accepted"] == {"ward": "wards are public"}
    owners = [one.secret["published_as_it_is"]["findings"] for one in (release, second)]
    assert [(one["column"], one["problem"]) for one in owners[0]] == [("ward", "determines")]
    assert owners[0] != owners[1]


def test_whose_the_rows_are_is_not_told_where_no_token_is_published(tmp_path):
    schema = {**ZIPS, "pid": {"role": "person"}}
    rows = np.arange(80)
    alone, pairs = (wards(False).with_columns(pid=pl.Series(owner)) for owner in (rows, rows // 20 * 10 + rows % 10))
    (masked, manifest, release), (again, other, second) = told_twice(tmp_path, (alone, pairs), schema)
    assert masked == again and manifest == other
    assert (release.evidence.persons, second.evidence.persons) == (80, 40)  # said to the owner
    assert json.loads(manifest)["evidence"].get("persons") is None and '"smallest": 40' in manifest
    config = tmp_path / "shoal.toml"
    config.write_text(
        '[attributes.zip]\nrole = "quasi"\nkind = "category"\ntaxonomy = { prefix = [3, 0] }\n[attributes.ward]\nrole = "other"\n'
        'accept = "wards are public"\n[attributes.ill]\nrole = "sensitive"\n[attributes.pid]\nrole = "person"\n[policy]\nk = 9\n'
    )
    found = CliRunner().invoke(app, ["verify", str(tmp_path / "1" / "masked.csv"), "-c", str(config), "--manifest"])
    assert found.exit_code == 0, found.exception


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
    # The half of another release, or a manifest that only bounds forgive, is found out.
    kept, manifest = json.loads(secret.read_text()), manifest_path(masked)
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**kept, "output_sha256": "0" * 64}))
    swapped = [str(other) if one == str(secret) else one for one in arguments]
    with pytest.raises(VerificationError, match="belongs to another file"):
        raise runner.invoke(app, swapped).exception
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "measures": {**told["measures"], "nil": 0.01}}))
    with pytest.raises(VerificationError, match="its manifest says something else"):
        raise runner.invoke(app, arguments).exception
    manifest.write_text(json.dumps(told))
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
        (lambda told: told["evidence"].update(passed=1 > 2), "passed"),
        (lambda told: told["evidence"].update(persons=12), "persons"),
        (lambda told: told["evidence"].update(notes=["Record 7 is Ash's."]), "notes"),
        (lambda told: told["evidence"].update(remark="Ash"), "no verifier says"),
        (lambda told: told["evidence"]["checks"][0].update(required=2.0), "other checks"),
        (lambda told: told["evidence"]["checks"][0].update(model="t_closeness"), "other checks"),
        (lambda told: told["measures"].update(smallest_class=9), "smallest_class"),
        (lambda told: told["measures"].update(dm=1.0), "dm"),
        (lambda told: told["measures"].update(avg=0.3), "avg"),
        (lambda told: told["measures"].update(changed=9999), "changed"),
        (lambda told: told["measures"].update(nil=1.5), "nil"),
        (lambda told: told["measures"].update(suppressed=3), "suppressed"),
        (lambda told: told["measures"].update(sse=17.25), "measures"),
        (lambda told: told.update(measures=None), "measures"),
        (lambda told: told["roles"].update(ill="other"), "other roles"),
        (lambda told: told["roles"].update(name="identifier"), "does not know"),
        (lambda told: told["roles"].pop("zip"), "other roles"),
        (lambda told: told["settings"].update(intervals="wide"), "settings"),
        (lambda told: told["settings"].update(seed=3), "settings"),
        (lambda told: told["transformations"].update(age={"round": 5}), "transformations"),
        (lambda told: told["accepted"].update(ill="nobody minds"), "reasons"),
        (lambda told: told["published_as_it_is"]["together"].update(alone=5), "the only ones"),
        (lambda told: told.pop("published_as_it_is"), "published as they are"),
        (lambda told: told.update(input_commitment="Ash"), "commitment"),
        (lambda told: told.update(shoal="Ash"), "version"),
        (lambda told: told.update(input_sha256="0" * 64), "input_sha256"),
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
