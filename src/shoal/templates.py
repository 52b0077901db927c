"""Templates for `shoal init`: what a rule or a habit of a field says about columns, with its source, checked against the table.

A template knows columns by their names and changes the suggestion for a column only where its values are what the rule speaks
of: a rule about five-digit zip codes is not applied to towns. What it could not apply is said. No template is legal advice; each
names the text it follows, and what that text leaves open.

>>> import polars as pl
>>> from shoal.suggesting import profile
>>> table = pl.DataFrame({"age": [33, 91, 47], "zip": ["41076", "41075", "48202"], "diagnosis": ["flu", "cold", "flu"]})
>>> found = applied("hipaa-limited", profile(table))
>>> [(column.name, column.role, dict(column.more)) for column in found.columns]
[('age', 'quasi', {'top': 90}), ('zip', 'quasi', {}), ('diagnosis', 'sensitive', {})]
>>> found.columns[1].taxonomy
{'prefix': [3, 0]}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.errors import require_word
from shoal.looks import words_of
from shoal.schema import Role
from shoal.suggesting import ColumnProfile, Diversity, Profile

NAMES = "name names surname forename firstname lastname givenname nachname vorname maiden"
ADDRESSES = "street address addr strasse"
NUMBERS = (
    "phone telephone fax email mail ssn mrn insurance policy account certificate licence license plate vehicle vin device serial "
    "url ip fingerprint photo biometric"
)
ZIP = "zip zipcode postcode postalcode plz"
AGE = "age alter"
BIRTH = "birth birthdate dob born geburtsdatum"
DATES = "admitted admission discharged discharge died death visit encounter diagnosed onset date datum"


@dataclass(frozen=True)
class Rule:
    """What a template says about columns whose names hold one of some words."""

    words: str
    role: Role
    why: str
    fits: Callable[[ColumnProfile], bool] = lambda column: True
    taxonomy: Any = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def speaks_of(self, column: ColumnProfile) -> bool:
        """Whether a column's name holds one of the words."""
        spoken = {*words_of(column.name), "".join(words_of(column.name))}
        return bool(spoken & set(self.words.split()))


@dataclass(frozen=True)
class Template:
    """What a field asks of its tables: where that is written, rules by column, and a policy."""

    source: str
    says: str
    k: int
    why: str
    rules: tuple[Rule, ...]
    p: int | None = None
    """The number of different sensitive values that a class needs at least; None: as the profile suggests."""


def _is_number(column: ColumnProfile) -> bool:
    return column.kind == "number"


def _is_date(column: ColumnProfile) -> bool:
    return column.kind == "date"


def _is_zip(column: ColumnProfile) -> bool:
    return column.taxonomy == {"prefix": [3, 0]} or (
        isinstance(column.taxonomy, dict) and max([0, *column.taxonomy.get("prefix", [])]) in (3, 4)
    )


SAFE_HARBOR = "45 CFR 164.514(b)(2)(i)(C) gathers all ages over 89 in one"
OLD = Rule(AGE, "quasi", f"Others may know it; {SAFE_HARBOR}.", _is_number, more={"top": 90})
THREE_DIGITS = Rule(
    ZIP,
    "quasi",
    "Others may know it. 45 CFR 164.514(b)(2)(i)(B) lets three digits of a zip code stay where more than 20,000 people live.",
    _is_zip,
    taxonomy={"prefix": [3, 0]},
)
TO_THE_YEAR = Rule(
    f"{BIRTH} {DATES}",
    "quasi",
    "Others may know it. A limited data set may hold it; where the policy needs it coarser it becomes the year, which is all "
    "that 45 CFR 164.514(b)(2)(i)(C) lets stay.",
    _is_date,
    taxonomy={"dates": ["year", "decade"]},
)
DIRECT = Rule(
    f"{NAMES} {ADDRESSES} {NUMBERS}",
    "identifier",
    "It names a person, a place of living or a number that is a person's.",
)

TEMPLATES: dict[str, Template] = {
    "hipaa-limited": Template(
        source="45 CFR 164.514(e)(2), and CMS's cell size policy",
        says=(
            "A limited data set leaves out names, street addresses, telephone and fax numbers, e-mail addresses, social "
            "security, medical record, health plan, account, certificate and licence numbers, vehicle and device identifiers, "
            "web and IP addresses, biometrics and full-face photographs, of the patient and of relatives, employers and "
            "household. Towns, zip codes and dates may stay under a data use agreement; here they are quasi-identifiers and no "
            "finer than the policy lets them."
        ),
        k=11,
        why="the rule names no number; CMS shows no cell of 10 or fewer people",
        rules=(DIRECT, OLD, THREE_DIGITS, TO_THE_YEAR),
    ),
    "health-registry": Template(
        source="European Medicines Agency, External guidance on the implementation of Policy 0070 (publication of clinical data)",
        says=(
            "A risk of 0.09 of being found is the threshold that this guidance names for clinical reports on the web. Dates are "
            "published no finer than months."
        ),
        k=12,
        why="1/12 keeps below 0.09; many read that as 11, since 1/11 is 0.0909",
        p=3,
        rules=(
            DIRECT,
            OLD,
            THREE_DIGITS,
            Rule(
                f"{BIRTH} {DATES}",
                "quasi",
                "Others may know it; months are the finest that is published.",
                _is_date,
                taxonomy={"dates": ["quarter", "year", "decade"]},
                more={"truncate": "month"},
            ),
        ),
    ),
    "census": Template(
        source="Federal Committee on Statistical Methodology, Statistical Policy Working Paper 22 (1994, 2005)",
        says=(
            "Public use microdata of the US Census Bureau show no area with fewer than 100,000 people, and incomes and ages are "
            "top coded. How many people live in an area stands in no table of answers: look it up, and give areas a taxonomy."
        ),
        k=5,
        why="a choice, not that paper's",
        rules=(
            DIRECT,
            Rule(AGE, "quasi", "Others may know it; the oldest stand out.", _is_number, more={"top": 90}),
            Rule(BIRTH, "quasi", "Others may know it; to the year.", _is_date, more={"truncate": "year"}),
            Rule("income salary wage earnings lohn gehalt", "sensitive", "What nobody must learn about a person."),
            Rule(
                f"{ZIP} county town city municipality region place puma",
                "quasi",
                "Where people live is the first thing others know.",
            ),
        ),
    ),
    "survey": Template(
        source="Benschop, Machingauta & Welch, Statistical Disclosure Control: A Practice Guide (2021)",
        says=(
            "A public use file of a survey has no direct identifiers, few key variables, and no tails by which a household "
            "stands out: ages and household sizes are top coded. Weights and answers are not masked; answers that are delicate "
            "are sensitive."
        ),
        k=5,
        why="a choice; how strict a file has to be depends on who may use it",
        rules=(
            DIRECT,
            Rule(AGE, "quasi", "Others may know it; the oldest stand out.", _is_number, more={"top": 85}),
            Rule(
                "household hhsize members children",
                "quasi",
                "Neighbours know it; large households stand out.",
                _is_number,
                more={"top": 8},
            ),
            Rule(
                "interviewer enumerator cluster psu strata stratum",
                "identifier",
                "It tells where and by whom somebody was asked.",
                more={"repeats": "allowed"},
            ),
            Rule(BIRTH, "quasi", "Others may know it; to the year.", _is_date, more={"truncate": "year"}),
        ),
    ),
    "education": Template(
        source="NCES 2011-603, Statistical Methods for Protecting Personally Identifiable Information (2010)",
        says=(
            "States report no group of fewer than 5 to 30 students, most of them none below 10. Scores and disabilities are what "
            "nobody must learn about a student; school, grade, sex and ethnicity are what classmates know."
        ),
        k=10,
        why="the least number of students in most states' reports",
        p=2,
        rules=(
            DIRECT,
            Rule("student pupil matrikel", "identifier", "It is a student's number."),
            Rule("school grade class course cohort", "quasi", "Classmates know it."),
            Rule("score points mark gpa result disability iep", "sensitive", "What nobody must learn about a student."),
            Rule(BIRTH, "quasi", "Classmates know it; to the year.", _is_date, more={"truncate": "year"}),
        ),
    ),
}


def applied(name: str, found: Profile) -> Profile:
    """The suggestions for a table by a template; what does not fit its values stays as it was, and is said."""
    require_word("--template", name, TEMPLATES)
    template = TEMPLATES[name]
    columns, notes = [], [f"Template {name}: {template.source}. {template.says}"]
    for column in found.columns:
        rule = next((one for one in template.rules if one.speaks_of(column)), None)
        if rule is None or column.role == "person":
            columns.append(column)
        elif not rule.fits(column):
            notes.append(
                f"Template {name}: '{column.name}' is called as if a rule spoke of it, and its values are not what that rule is "
                f"about; it stays {column.role}. Look at it."
            )
            columns.append(column)
        else:
            columns.append(_ruled(column, rule))
    if not found.named("person") and _keys(columns) == set():
        notes.append(f"Template {name}: no column is recognised as an identifier; make sure that none is there.")
    k = min(template.k, max(2, found.records // 10))
    small = "" if k == template.k else f" The table is too small for {template.k}, so it is {k} here."
    notes.append(f"Template {name}: k = {template.k}, {template.why}.{small}")
    return replace(
        found, columns=tuple(columns), k=k, diversity=_diversity(found, columns, template), notes=(*notes, *found.notes)
    )


def _ruled(column: ColumnProfile, rule: Rule) -> ColumnProfile:
    keeps = rule.role == "quasi" and rule.taxonomy is None and "truncate" not in rule.more
    more = {key: value for key, value in rule.more.items() if key != "repeats"}
    repeats = rule.more.get("repeats", column.repeats) if rule.role == "identifier" else None
    return replace(
        column,
        role=rule.role,
        why=rule.why,
        taxonomy=column.taxonomy if keeps else rule.taxonomy,
        taxonomy_why=column.taxonomy_why if keeps else "",
        within=column.within if rule.role == "quasi" else None,
        within_why=column.within_why if rule.role == "quasi" else "",
        repeats=repeats,
        more=more,
    )


def _keys(columns: list[ColumnProfile]) -> set[str]:
    return {column.name for column in columns if column.role == "identifier"}


def _diversity(found: Profile, columns: list[ColumnProfile], template: Template) -> tuple[Diversity, ...]:
    known = {rule.attribute: rule for rule in found.diversity}
    names = [column.name for column in columns if column.role == "sensitive"]
    kept = [
        known.get(name, Diversity(name, 1, "No rule on its classes: nothing was counted for it.")) for name in names
    ]
    if template.p is None:
        return tuple(kept)
    # Never more than the values allow: what the profile found is the most.
    return tuple(replace(rule, p=min(rule.p, template.p)) if rule.p > 1 else rule for rule in kept)
