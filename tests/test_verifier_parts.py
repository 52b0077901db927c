"""What the verifier says, fact by fact: which classes, in which order, how many spellings, whose rows, and in which role."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.configuration import read_schema
from shoal.errors import ConfigError, InputError, VerificationError
from shoal.models import MODELS
from shoal.models.parameters import Word, declared
from shoal.policy import Policy
from shoal.verifier import (
    Check,
    Evidence,
    Violation,
    assumed_roles,
    assumed_schema,
    audit,
    audited_column,
    judge,
    masked_schema,
    published_quasi,
    verify,
)

AGE = read_schema({"age": {"role": "quasi"}, "ill": {"role": "sensitive"}})


def table(classes: list[tuple[str, int]]) -> pl.DataFrame:
    ages = [age for age, size in classes for _ in range(size)]
    return pl.DataFrame(
        {"age": ages, "ill": ["flu", "cold", "ulcer"] * (len(ages) // 3) + ["flu", "cold"][: len(ages) % 3]}
    )


def test_violations_come_worst_first_and_the_first_of_equals_first() -> None:
    found = verify(table([("a", 2), ("b", 1), ("c", 3), ("d", 1), ("e", 2)]), Policy((shoal.KAnonymity(3),)), AGE)
    assert [(v.published["age"], v.size, v.deficit) for v in found.violations] == [("b", 1, 2), ("d", 1, 2), ("a", 2, 1), ("e", 2, 1)]  # fmt: skip
    (check,) = found.checks
    assert (check.failing, check.holds, check.required, check.strongest, check.parameter) == (4, False, 3.0, 1.0, "k")
    sizes = [1 + i * 7 % 3 % 2 for i in range(80)]
    mixed = verify(table([(f"c{i}", size) for i, size in enumerate(sizes)]), Policy((shoal.KAnonymity(3),)), AGE)
    by_deficit = [f"c{i}" for size in (1, 2) for i in range(80) if sizes[i] == size]
    assert [v.published["age"] for v in mixed.violations] == by_deficit[:50]
    many = verify(table([(f"c{i}", 1) for i in range(60)]), Policy((shoal.KAnonymity(2),)), AGE)
    assert len(many.violations) == 50 and many.checks[0].failing == 60
    assert [v.published["age"] for v in many.violations] == [f"c{i}" for i in range(50)]
    with pytest.raises(VerificationError) as error:
        many.require()
    assert "60 failing classes" in str(error.value)
    assert "c4)" in str(error.value) and "c5)" not in str(error.value)  # the first five


def test_a_violation_in_words() -> None:
    told: list[tuple[dict[str, Any], int, float, str, str]] = [
        (
            {"age": "1", "zip": None},
            1,
            1.0,
            "as written",
            "class (age = 1, zip = missing) with 1 record fails rule by 1",
        ),
        ({"age": "1"}, 2, 0.123456789, "as written", "class (age = 1) with 2 records fails rule by 0.123457"),
        ({"age": "1"}, 2, 1.0, "as read", "class (age = 1) with 2 records, as read, fails rule by 1"),
        (
            {"age": "*"},
            2,
            1.0,
            "as written",
            "the class of suppressed records (age = *) with 2 records fails rule by 1",
        ),
        ({"age": "*", "zip": "1"}, 2, 1.0, "as written", "class (age = *, zip = 1) with 2 records fails rule by 1"),
    ]
    for published, size, deficit, way, text in told:
        assert str(Violation("rule", published, size, deficit, way)) == text


def test_evidence_fails_by_any_check_or_problem() -> None:
    good, bad = (Check("rule", "k_anonymity", None, "k", 2.0, 2.0, failing) for failing in (0, 1))
    for checks, problems, passed in (
        ((good,), (), True),
        ((good, bad), (), False),
        ((good,), ("odd.",), False),
        ((), (), True),
    ):
        evidence = Evidence(5, 2, 2, 3, checks, problems=problems)
        assert evidence.passed is passed and evidence.to_dict()["passed"] is passed
        assert "persons" not in evidence.to_dict()
    with pytest.raises(VerificationError, match=r"^odd\.$"):
        Evidence(5, 2, 2, 3, (good,), problems=("odd.",)).require()
    nan = Check("rule", "t_closeness", "ill", "t", 0.2, float("nan"), 0)
    told = Evidence(5, 2, 2, 3, (nan,), persons=4).to_dict()
    assert (told["checks"][0]["strongest"], told["checks"][0]["holds"], told["persons"]) == (None, True, 4)


def test_spellings_that_are_told() -> None:
    texts = ["1", "1.0", "+1", "01", "1e0", None, "?", "2"]
    schema = read_schema({"age": {"role": "quasi", "kind": "number"}})
    found = verify(pl.DataFrame({"age": texts}), Policy((shoal.KAnonymity(1),)), schema)
    (note,) = found.notes
    assert note.startswith("Column 'age' writes one value in several ways ('1' and '1.0' and '+1' and '01'; ")
    assert "missing and '?'" in note
    ill = (
        [f"v{i}" for i in range(8)]
        + [f"V{i}" for i in range(8)]
        + ["NA", "null", "-", "?", "n/a", "nan", "none given", "unknown"]
    )
    told = verify(pl.DataFrame({"age": ["1"] * 24, "ill": ill}), Policy((shoal.KAnonymity(1),)), AGE).notes
    joined = [text for text in told if "counted as one value" in text]
    assert [f"'V{i}', 'v{i}' are counted as one value" in text for i, text in enumerate(joined)] == [True] * 5
    assert any(text.startswith("Column 'ill': 3 more values have several spellings") for text in told)
    (blank,) = (text for text in told if "say that there is no value" in text)
    assert blank.count("'") == 2 + 2 * 5
    few = verify(
        pl.DataFrame({"age": ["1"] * 10, "ill": ill[:5] + ill[8:13]}), Policy((shoal.KAnonymity(1),)), AGE
    ).notes
    assert sum("counted as one value" in text for text in few) == 5 and not any("more values" in text for text in few)


def test_both_ways_to_look_at_a_table_count() -> None:
    """What holds is what holds in both; `34` and `34.0` are two classes as written and one as read."""
    masked = pl.DataFrame(
        {"age": ["34"] * 2 + ["34.0"] * 3 + ["40"] * 4, "ill": ["a", "b", "a", "a", "a", "a", "b", "a", "b"]}
    )
    found = verify(masked, shoal.KAnonymity(2) & shoal.AlphaK(0.6) & shoal.PSensitive(2), AGE)
    by_name = {check.model: check for check in found.checks}
    assert (found.classes, found.smallest, found.largest) == (3, 2, 4)
    assert by_name["k_anonymity"].strongest == 2 and by_name["k_anonymity"].holds
    assert by_name["alpha_k"].strongest == 1.0 and by_name["alpha_k"].failing == 1
    assert by_name["p_sensitive"].strongest == 1.0 and by_name["p_sensitive"].failing == 1
    assert [v.way for v in found.violations] == ["as written", "as written", "as read"]


PEOPLE = {"who": {"role": "person"}, "age": {"role": "quasi"}, "ill": {"role": "sensitive"}}


def test_rows_of_people_whom_the_file_does_not_name() -> None:
    masked = table([("a", 6), ("b", 6)])
    policy = shoal.KAnonymity(2) & shoal.PSensitive(2) & shoal.TCloseness(0.9, "ill")
    found = verify(masked, policy, read_schema(PEOPLE))
    (note,) = (text for text in found.notes if "whose each row is" in text)
    assert note.endswith("rows were counted, not persons, and t_closeness(t = 0.9) cannot be judged.")
    assert [check.model for check in found.checks] == ["k_anonymity", "p_sensitive"]
    plain = verify(masked, shoal.KAnonymity(2) & shoal.PSensitive(2), read_schema(PEOPLE))
    assert any(text.endswith("rows were counted, not persons.") for text in plain.notes)
    assert plain.persons is None


def test_rows_of_people_with_tokens() -> None:
    schema = read_schema({**PEOPLE, "who": {"role": "person", "publish": "token"}})
    masked = table([("a", 6), ("b", 6)]).with_columns(who=pl.Series([1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5]))
    found = verify(masked, Policy((shoal.KAnonymity(3),)), schema)
    assert (found.persons, found.records, found.smallest, found.largest) == (5, 12, 2, 3)
    assert not found.passed and any("12 rows of 5" in note for note in found.notes)
    assert found.problems == ()
    torn = masked.with_columns(who=pl.Series([1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 1]))
    assert verify(torn, Policy((shoal.KAnonymity(2),)), schema).problems == (
        "The rows of 1 of 5 persons are in different classes.",
    )


def test_every_form_of_every_model_is_audited() -> None:
    masked = pl.DataFrame({"age": ["a"] * 4 + ["b"] * 4, "ill": ["1", "2", "3", "4"] * 2, "pay": [1, 2, 3, 4] * 2})
    schema = read_schema(
        {
            "age": {"role": "quasi"},
            "ill": {
                "role": "sensitive", "order": ["1", "2", "3", "4"], "protect": ["x"],
                "taxonomy": {"rows": [["1", "x", "*"], ["2", "x", "*"], ["3", "y", "*"], ["4", "y", "*"]]},
                "categories": {"low": ["1", "2"], "high": ["3", "4"]},
            },
            "pay": {"role": "sensitive"},
        }
    )  # fmt: skip
    found = audit(masked, schema)
    for name, model in MODELS.items():
        words = {
            (parameter, word)
            for parameter, kind in declared(model).items()
            if isinstance(kind, Word)
            for word in kind.allowed
        }
        tried = {
            (key, value)
            for one in found
            if one.model == name
            for key, value in one.settings.items()
            if isinstance(value, str)
        }
        assert words - {("reference", "rare")} <= tried, name  # no example of kpqr asks for the variance of rare values
    assert [one.model for one in found] == sorted(one.model for one in found)
    asked = audit(masked, schema, Policy((shoal.PAlphaSensitive(2, 0.7, "ill"), shoal.PAlphaSensitive(2, 0.9, "ill"))))
    alphas = [one.settings.get("alpha") for one in asked if one.model == "p_alpha_sensitive" and one.attribute == "ill"]
    assert {0.7, 0.9} <= set(alphas) and all(
        "p" not in one.settings for one in asked if one.model == "p_alpha_sensitive"
    )


@pytest.mark.parametrize("width", [1, 3, 7, 1000])
def test_classes_are_judged_alike_however_many_fit_at_once(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strongest parameters and deficits by piece are those of the whole."""
    random = np.random.default_rng(width)
    n, classes = 60, 9
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, n - classes)])
    codes = random.integers(-1, 4, n)
    column = shoal.models.Sensitive(
        "ill", codes.astype(np.int32), ("a", "b", "c", "d"), numbers=np.arange(4.0), ordered=True
    )
    models: list[Any] = [shoal.KAnonymity(2), shoal.PSensitive(3), shoal.AlphaK(0.5), shoal.TCloseness(0.3), shoal.LDiversity(2.5, variant="entropy")]  # fmt: skip
    rules = Policy(tuple(models)).bind([column], n).rules
    sizes = np.bincount(labels, minlength=classes)
    counts = np.zeros((classes, 4), dtype=np.int64)
    for label, code in zip(labels, codes, strict=True):
        if code >= 0:
            counts[label, code] += 1
    monkeypatch.setattr("shoal.pieces.CELLS", 4 * width)
    strongest, deficits = judge(rules, labels.astype(np.int64), sizes.astype(np.int64), [column])
    for i, rule in enumerate(rules):
        own = counts if rule.view is not None else np.zeros((classes, 0), dtype=np.int64)
        assert deficits[i].tolist() == pytest.approx(rule.deficit(sizes, own).tolist())
        assert strongest[i] == pytest.approx(rule.strongest(sizes, own))


@pytest.mark.parametrize(
    ("attribute", "columns", "found"),
    [
        ({}, ["age_min", "age_max"], ["age_min", "age_max"]),
        ({"kind": "number"}, ["age_max", "age_min"], ["age_min", "age_max"]),
        ({}, ["age"], ["age"]),
        ({"kind": "category"}, ["age_min", "age_max"], None),
        ({"order": ["1", "2"]}, ["age_min", "age_max"], None),
        ({"taxonomy": {"intervals": [5, 10]}}, ["age_min", "age_max"], None),
        ({}, ["age_min"], None),
        ({}, ["age_max"], None),
    ],
)
def test_two_columns_are_one_number(attribute: dict[str, Any], columns: list[str], found: list[str] | None) -> None:
    masked = pl.DataFrame({name: [1] for name in columns})
    schema = read_schema({"age": {"role": "quasi", **attribute}})
    if found is None:
        with pytest.raises(ConfigError, match="has no role"):
            masked_schema(schema, masked)
        with pytest.raises(InputError, match="no column 'age'"):
            published_quasi(masked, schema)
    else:
        assert list(masked_schema(schema, masked).attributes) == ["age"]
        assert published_quasi(masked, schema) == found


def test_columns_that_a_masked_table_may_not_have() -> None:
    schema = read_schema(
        {
            "age": {"role": "quasi"},
            "ill": {"role": "sensitive"},
            "name": {"role": "identifier"},
            "who": {"role": "person"},
        }
    )
    good = pl.DataFrame({"age": ["1"], "ill": ["flu"]})
    assert list(masked_schema(schema, good).attributes) == ["age", "ill", "name", "who"]
    with pytest.raises(VerificationError, match="still has the identifier 'name'"):
        masked_schema(schema, good.with_columns(name=pl.lit("x")))
    with pytest.raises(VerificationError, match="still has the person column 'who'"):
        masked_schema(schema, good.with_columns(who=pl.lit("x")))
    with pytest.raises(ConfigError, match=r"'age_min' has no role; only together, and without 'age' itself"):
        masked_schema(schema, good.with_columns(age_min=pl.lit(1), age_max=pl.lit(2)))
    with pytest.raises(InputError, match="no column 'ill', which is a sensitive attribute"):
        published_quasi(good.drop("ill"), schema)
    rest = read_schema({"age": {"role": "quasi"}, "*": {"role": "other"}})
    found = masked_schema(rest, pl.DataFrame({"age": ["1"], "ward": [1]}))
    assert {name: one.role for name, one in found.attributes.items()} == {"age": "quasi", "ward": "other"}
    with pytest.raises(VerificationError, match=r"column 'ward', which \[attributes"):
        masked_schema(
            read_schema({"age": {"role": "quasi"}, "*": {"role": "identifier"}}),
            pl.DataFrame({"age": ["1"], "ward": [1]}),
        )


def test_roles_that_columns_seem_to_have() -> None:
    frame = pl.DataFrame(
        {
            "age": ["[20, 29]", "30"], "job": ["{a, b}", "c"], "zip": ["41*", "42*"], "span": ["(1, 2)", "x"], "low_min": [1, 2],
            "low_max": [3, 4], "text_min": ["a", "b"], "text_max": ["c", "d"], "alone_min": [1, 2], "illness": ["flu", "cold"],
        }
    )  # fmt: skip
    roles = {column.name: (column.role, column.why) for column in assumed_roles(frame)}
    for name in ("age", "job", "zip", "span"):
        assert roles[name] == ("quasi", "generalized: intervals, sets or stars")
    assert roles["low_min"] == roles["low_max"] == ("quasi", "one end of the intervals of low")
    for name in ("text_min", "text_max", "alone_min"):
        assert "one end" not in roles[name][1]
    assert roles["illness"][0] == "sensitive"
    one = assumed_roles(frame.select("illness")[:1])
    assert [(column.role, column.why) for column in one] == [("quasi", "nobody can tell from one record")]
    # Somebody has to be known by something: without a quasi-identifier all columns are taken for one.
    (alone,) = assumed_roles(frame.select("illness"))
    assert alone.role == "quasi" and alone.why.endswith("; counted as known, since no other is")
    assert assumed_schema(assumed_roles(frame)).named("sensitive") == ["illness"]
    number = pl.DataFrame({"patient_id": list(range(40)), "age": ["[20, 29]"] * 40})
    by_name = {column.name: column for column in assumed_roles(number)}
    assert by_name["patient_id"].role == "quasi" and "looks like an identifier" in by_name["patient_id"].why


def test_sensitive_values_as_a_reader_takes_them() -> None:
    schema = read_schema(
        {
            "age": {"role": "quasi"},
            "ill": {"role": "sensitive"},
            "pay": {"role": "sensitive"},
            "day": {"role": "sensitive", "kind": "date"},
        }
    )
    masked = pl.DataFrame(
        {
            "ill": ["b", "a", "B", None, "NA"],
            "pay": [2.0, 1.0, 2.0, None, 10.0],
            "day": ["1970-01-03", "1970-01-02", None, "1970-01-03", "1970-01-11"],
        }
    )
    ill, pay, day = (audited_column(masked, name, schema) for name in ("ill", "pay", "day"))
    assert (ill.codes.tolist(), ill.joined, ill.blank, ill.ordered) == (
        [0, 1, 0, -1, -1],
        (("B", "b"),),
        ("NA",),
        False,
    )
    assert (pay.codes.tolist(), pay.labels, pay.ordered) == ([1, 0, 1, -1, 2], ("1", "2", "10"), True)
    assert pay.numbers is not None and pay.numbers.tolist() == [1, 2, 10]
    assert (day.codes.tolist(), day.ordered) == ([1, 0, -1, 1, 2], True)
    assert day.numbers is not None and day.numbers.tolist() == [1, 2, 10]
    rows = [["flu", "lung", "*"], ["cold", "lung", "*"], ["ulcer", "*"]]
    tree = read_schema(
        {
            "ill": {
                "role": "sensitive",
                "taxonomy": {"rows": rows},
                "protect": ["lung"],
                "categories": {"x": ["flu", "cold"], "y": ["ulcer", "lung"]},
            }
        }
    )
    found = audited_column(pl.DataFrame({"ill": ["flu", "ulcer", "flu"]}), "ill", tree)
    assert found.taxonomy is not None and found.protect == ("lung",) and found.categories[0] == ("x", ("flu", "cold"))
    audited_column(pl.DataFrame({"ill": ["lung", "ulcer"]}), "ill", tree)  # nodes of one level are values
    with pytest.raises(InputError, match="a value and a node of its taxonomy above that value"):
        audited_column(pl.DataFrame({"ill": ["flu", "lung"]}), "ill", tree)


def test_what_is_no_policy_is_refused() -> None:
    masked, schema = pl.DataFrame({"age": ["*", "*"]}), shoal.Schema({"age": shoal.Attribute(role="quasi")})
    with pytest.raises(shoal.ShoalError, match="a Policy"):
        verify(masked, 5, schema)  # type: ignore[arg-type]
