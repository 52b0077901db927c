"""The report says what was found: its figures are those of the release, its words are escaped, its policy allows no script."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.datasets import hospital
from shoal.errors import ConfigError, InputError
from shoal.measures.bounds import check_certificate, loss_bound
from shoal.models import MODELS
from shoal.report import findings_of, page
from shoal.report.markup import Html, at_least, element, percent, plain, shown
from shoal.report.words import _SENTENCES, promise
from shoal.verifier import Check

SCHEMA: dict[str, Any] = {
    "name": {"role": "identifier"},
    "record": {"role": "identifier"},
    "age": {"role": "quasi", "kind": "number", "domain": [0, 110]},
    "sex": {"role": "quasi"},
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}},
    "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}},
    "occupation": {"role": "identifier", "repeats": "allowed"},
    "diagnosis": {"role": "sensitive"},
    "stay": {"role": "other"},
    "cost": {"role": "other", "round": 500, "top": 50000, "accept": "rounded to 500 & capped <here>"},
}
QUICK: dict[str, Any] = {"algorithm": "mondrian", "refine": False}


def words(text: str) -> str:
    """A page as people read it: without markup, styles and drawings' insides."""
    text = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\xa0", " ").split())


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    data = shoal.Microdata.from_frame(hospital(800, seed=3), SCHEMA)
    return shoal.anonymize(data, shoal.KAnonymity(4) & shoal.PSensitive(2, "diagnosis"), **QUICK)


@pytest.fixture(scope="module")
def owner(release: shoal.Release) -> str:
    return page(findings_of(release, "owner"))


@pytest.fixture(scope="module")
def public(release: shoal.Release) -> str:
    return page(findings_of(release, "public"))


def test_the_owner_reads_the_figures_of_the_release(release: shoal.Release, owner: str) -> None:
    told, measures, evidence = words(owner), release.measures, release.evidence
    assert "Both promises hold" in told and "This file keeps its promises." in told
    assert f"All {evidence.classes:,} classes, read back from the published values alone" in told
    assert f"asked 4, found {evidence.smallest}" in told
    assert percent(measures.ncp).replace("\xa0", " ") + " of the detail in the masked columns" in told
    for name in release.data.quasi:
        assert percent(measures.attributes[name]["ncp"]).replace("\xa0", " ") in told
    assert "for the owner, with figures of the original" in told


def test_the_bound_is_proven_and_rounded_down(release: shoal.Release, owner: str) -> None:
    data, rules = release.data, release.data.rules(release.policy)
    bound = loss_bound(data.codes, data.space("ncp"), rules)
    assert check_certificate(data.codes, data.space("ncp"), rules, bound)
    said = at_least(bound.mean)
    assert f"can lose less than {said}".replace("\xa0", " ") in words(owner)
    assert float(said.removesuffix("\xa0%")) / 100 <= bound.mean + 1e-12 <= release.measures.ncp


def test_an_intruder_before_is_counted_as_one_would_by_hand(release: shoal.Release, owner: str) -> None:
    known = release.data.frame.select("age", "sex", "zip").drop_nulls()
    alone = int(known.is_unique().sum())
    found = findings_of(release, "owner").intruders[0]
    assert found.knows == ("age", "sex", "zip") and found.source == "a voter list"
    # Whoever has a gap in what is known fits more records, and is hardly ever found for certain.
    assert alone <= found.certain_before <= alone + release.data.frame.height - known.height
    assert f"would have found {found.certain_before:,} of 800 records for certain" in words(owner)
    assert found.certain == 0 and found.fewest >= release.evidence.smallest


def test_the_tightest_classes_are_those_that_fail_when_more_is_asked(release: shoal.Release, owner: str) -> None:
    sizes = release.masked.group_by(release.data.quasi).agg(n=pl.len(), p=pl.col("diagnosis").drop_nulls().n_unique())
    smallest, fewest = sizes["n"].min(), sizes["p"].min()
    told = words(owner)
    assert f"{(sizes['n'] == smallest).sum():,} of {sizes.height:,} are at {smallest}" in told
    assert f"{(sizes['p'] == fewest).sum():,} of {sizes.height:,} are at {fewest}" in told


def test_what_was_accepted_by_hand_stands_with_its_reason() -> None:
    frame = hospital(300, seed=5).with_columns(invoice=pl.int_range(300) * 7 + 1000)
    schema = {**SCHEMA, "invoice": {"role": "other", "accept": "nobody has <these>"}}
    release = shoal.anonymize(shoal.Microdata.from_frame(frame, schema), shoal.KAnonymity(3), **QUICK)
    for who in ("owner", "public"):
        told = words(page(findings_of(release, who, bounds=False)))
        assert "What was accepted by hand invoice : nobody has <these> ." in told
        assert "Accepted by hand: nobody has <these>" in told


def test_a_column_that_needs_a_decision_stands_beside_the_verdict(release: shoal.Release, owner: str) -> None:
    lone = int(release.masked.select("stay", "cost").is_unique().sum())
    assert lone >= 0.05 * 800
    opening = owner[: owner.index('class="lede"')]
    assert "Decide before you sign" in opening and f"{lone:,} of 800 records are the only ones" in words(opening)


def test_the_public_is_told_nothing_of_the_original(release: shoal.Release, public: str) -> None:
    told = words(public)
    assert "for the public" in told and "figures of the original are left out" in told
    for word in ("would have found", "in the original 1", "can lose less than", "random counts", "Seed", "detail lost"):
        assert word not in told
    assert "Whoever has a list, such as voters’, with age , sex , zip and admitted" in told


def test_the_public_report_is_a_function_of_what_is_published(release: shoal.Release, public: str) -> None:
    """Another original with the same masked table, other losses and other settings makes the same page."""
    from dataclasses import replace

    other = shoal.Microdata.from_frame(hospital(800, seed=4), SCHEMA)
    secret = {**release.secret, "settings": {**release.secret["settings"], "seed": 99}, "notes": {}}
    swapped = replace(release, data=replace(other, schema=release.data.schema), secret=secret)
    assert page(findings_of(swapped, "public")) == public


def test_no_script_no_style_attribute_and_a_policy_that_allows_neither(owner: str, public: str) -> None:
    for text in (owner, public):
        css = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)
        assert css is not None and text.count("<style>") == 1
        digest = base64.b64encode(hashlib.sha256(css[1].encode()).digest()).decode()
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert policy is not None
        assert html.unescape(policy[1]).startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
        assert "unsafe" not in policy[1]
        markup = text.replace(css[0], "")
        assert not re.search(r"<script|\son\w+=|\sstyle=|<link|<img|<iframe|javascript:|https?://", markup)
        assert len(text.encode()) < 2_000_000


def test_every_chart_has_a_title_a_description_and_a_table(owner: str) -> None:
    charts = re.findall(r'<svg class="chart.*?</svg>', owner, flags=re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        assert re.search(r"<title id=[^>]+>[^<]{10,}</title><desc id=[^>]+>[^<]{10,}</desc>", chart)
        assert "#0" not in chart and "var(--" in chart  # no stand-in colour is left
    assert "Class sizes as a table" in owner and "The line as a table" in owner


def test_the_words_are_the_house_s(owner: str, public: str) -> None:
    for text in (owner, public):
        for word in ("anonymous", "safe", "secure", "guaranteed", "optimal", "equivalence"):
            assert not re.search(rf"\b{word}\b", words(text)), word


def test_a_failing_table_is_not_called_good(release: shoal.Release) -> None:
    from dataclasses import replace

    policy = shoal.Policy((shoal.KAnonymity(200),))
    evidence = shoal.verify(release.masked, policy, release.data.schema)
    failing = sum(check.failing for check in evidence.checks)
    told = words(page(findings_of(replace(release, policy=policy, evidence=evidence), "public")))
    assert "The promise fails" in told and "does not keep its promises" in told and "keeps its promises" not in told
    assert f"{failing:,} classes fail of {evidence.classes:,}" in told


def test_persons_are_counted_where_there_are_some() -> None:
    from tests.visits import SCHEMA as VISITS
    from tests.visits import visits

    data = shoal.Microdata.from_frame(visits(60, 150), VISITS)
    release = shoal.anonymize(data, shoal.KAnonymity(3), **QUICK)
    assert release.evidence.persons is not None
    told = words(page(findings_of(release, "owner", bounds=False)))
    assert f"{release.evidence.records:,} rows of {release.evidence.persons:,} persons" in told
    assert "Every class has at least 3 persons" in told
    assert f"persons look the same, at least {release.evidence.smallest}" in told


def test_a_report_takes_the_place_of_a_report_and_of_nothing_else(release: shoal.Release, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    assert release.report(place, for_="public") == release.report(place, for_="public") == place
    other = tmp_path / "mine.html"
    other.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="not a report"):
        release.report(other)
    assert other.read_text() == "<html>mine</html>"
    with pytest.raises(InputError, match=r"\.html"):
        release.report(tmp_path / "masked.csv")
    with pytest.raises(ConfigError, match="for_"):
        release.report(place, for_="everybody")


def test_the_same_release_makes_the_same_bytes(release: shoal.Release, owner: str) -> None:
    assert page(findings_of(release, "owner")) == owner


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_has_a_sentence(name: str) -> None:
    for model in MODELS[name].examples():
        check = Check(str(model), name, "ill<ness>" if model.per_attribute else None, model.main, 1.0, 1.0, 0)
        told = promise(model, check, "records")
        assert name in _SENTENCES and "<ness>" not in told and not told.endswith(".")


def test_markup_escapes_everything_that_is_not_markup() -> None:
    assert element("p", "<b>", Html("<i>x</i>"), title='"&') == '<p title="&quot;&amp;">&lt;b&gt;<i>x</i></p>'
    assert shown("a\u202eb\x00<") == '<bdi class="q">a⟨U+202E⟩b⟨U+0000⟩&lt;</bdi>'
    assert plain("y" * 10_240, 3) == "yyy… (10,240 characters)"
