"""Suggestions written down: the text of a `shoal.toml` with a comment that says why beside each of them."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import tomlkit

from shoal.profiling import percent
from shoal.suggesting import Profile

# Characters of a comment line, as in the rest of the file.
WIDTH = 118
LISTED = 20  # columns to consider that are named: whoever looks at more of them knows the table
NOTICED = 1.05  # a rule that costs less than a twentieth more need not be spoken of
ROLES = """\
# Every column has a role:
#   identifier  names a person; left out of the release
#   person      says whose each row is, where people have several; left out of the release
#   quasi       others may know it; made equal within a class
#   sensitive   what nobody must learn about a person; published as it is
#   other       harmless; published as it is"""
TRANSFORMATIONS = """\
# Under any column, before anything else (docs/formats.md):
#   round = 100, top = 90, bottom = 18     numbers coarser; dates have top and bottom too
#   truncate = "month"                     dates to the start of a unit; = 2 for decimals, or for characters of texts
#   shift = { days = 183, key = "my.key" } all dates of a person by the same secret number of days
#   pseudonym = "my.key"                   a key column as tokens, the same with the same key, instead of leaving it out
#   drop = true                            leave it out"""
PUBLISH = """\
# publish = "token"                      # a random number for each person instead, to tell which rows belong together"""
METHOD = """\
[method]
algorithm = "auto"
objective = "ncp"                        # the loss to keep small: il, ncp or granularity
refine = true
missing = "category"                     # a missing value is a value of its own; or drop, error
seed = 0

[release]
order = "shuffle"                        # the order of the input says something about its records"""

WHAT = {
    "delimiter": "between the values",
    "encoding": "how letters are written",
    "sheet": "of the workbook",
    "skip_rows": "lines above the names of the columns",
    "skip_last": "lines below the last record: totals, remarks",
}
Source = dict[str, Any]


def config_text(found: Profile, source: Source, label: str, name: str = "shoal.toml") -> str:
    """The commented text of a `shoal.toml`; `source` is its `[source]` table."""
    lines = [
        *_comment(
            f"Suggested by shoal init for {label}: {count_of(found)}, {len(found.columns)} columns. "
            "Every suggestion says why: read them, correct what you know better, then run"
        ),
        f"#   shoal anonymize -c {name} -o masked.csv",
        "#",
    ]
    if found.named("quasi"):
        lines += [*_comment(f"Why anonymize: {found.reason}"), "#"]
    for note in found.notes:
        lines += [*_comment(f"Note: {note}"), "#"]
    lines += [*_considered(found), ROLES, "#", TRANSFORMATIONS, "", "[source]"]
    if "@" in source.get("url", ""):
        lines += _comment("Keep this file to yourself if the address holds a password.")
    lines += [
        f"{_set(key, value):<40} # {WHAT[key]}" if key in WHAT else _set(key, value)
        for key, value in source.items()
        if key != "missing"
    ]
    missing = list(dict.fromkeys([*source["missing"], *found.missing]))
    lines.append(f"{_set('missing', missing):<40} # texts that mean: no value")
    for column in found.columns:
        lines += ["", *_comment(column.why), f"[attributes.{_key(column.name)}]", _set("role", column.role)]
        if column.role in ("quasi", "sensitive"):
            lines.append(_set("kind", column.kind))
        if column.read_as:
            lines += _comment(column.reading_why)
            lines += [_set(key, value) for key, value in column.read_as.items()]
        lines += _comment(column.taxonomy_why)
        if column.taxonomy is not None:
            lines.append(_set("taxonomy", column.taxonomy))
        lines += _comment(column.within_why)
        lines += [_set(key, value) for key in ("within", "repeats") if (value := getattr(column, key)) is not None]
        lines += [_set(key, value) for key, value in column.more.items()]
        if column.role == "person":
            lines.append(PUBLISH)
    return "\n".join([*lines, "", *_policy(found), "", METHOD]) + "\n"


def proposed(found: Profile) -> str:
    """The policy and what it costs, in a sentence or two."""
    who = "records" if found.persons is None else "persons"
    parts = [f"at least {found.k} {who} in every class"]
    for one in found.diversity:
        if one.e is not None:
            parts.append(f"amounts of {one.attribute} that span at least {one.e:g}")
        elif one.p > 1:
            parts.append(f"{one.p} different values of {one.attribute}")
    without = [one.attribute for one in found.diversity if one.rule is None]
    told = f"{parts[0]}, with {', '.join(parts[1:])}" if len(parts) > 1 else parts[0]
    told += f"; no rule for {', '.join(without)}, as the file explains." if without else "."
    if found.costs is None:
        return told
    whole = "" if len(parts) == 1 else f", all of it {percent(found.costs.policy)}"
    return (
        f"{told} Tried on {found.costs.records:,} {who}: k alone loses {percent(found.costs.alone)} of what the "
        f"quasi-identifiers tell{whole}."
    )


def count_of(found: Profile) -> str:
    return f"{found.records:,} records" + ("" if found.persons is None else f" of {found.persons:,} persons")


def _considered(found: Profile) -> list[str]:
    """Columns that could be quasi-identifiers too, with what each tells and would cost, as a comment."""
    if not found.consider:
        return []
    lines = _comment(
        "Consider: each of these is a quasi-identifier too if somebody may know it about a person. With the share of the pairs "
        "of records that it tells apart"
        + ("" if found.costs is None else f", and what the others then lose instead of {percent(found.costs.alone)}")
        + ". Give it the role quasi where that is so."
    )
    costs = {} if found.costs is None else found.costs.consider
    for column in found.consider[:LISTED]:
        tells = f"tells {percent(column.separation)} apart"
        lost = f", the others lose {percent(costs[column.name])}" if column.name in costs else ""
        now = "left out" if column.left_out else "published as it is"
        lines += [f"#   {line[2:]}" for line in _comment(f"{column.name}: {tells}{lost} (now {now})")]
    if len(found.consider) > LISTED:
        lines.append(f"#   and {len(found.consider) - LISTED} more that tell less")
    return [*lines, "#"]


def _policy(found: Profile) -> list[str]:
    """`[policy]`; a sensitive attribute whose rule would cost too much is left as a comment."""
    who = "records" if found.persons is None else "persons"
    lines = ["[policy]", f"{_set('k', found.k):<40} # every class has at least {found.k} {who}"]
    for one in found.diversity:
        lines += _comment(f"{one.attribute}: {one.why}{_dearer(found, one.attribute)}")
    if found.costs is not None and found.costs.rules:
        lines += _comment(
            f"Tried on {found.costs.records:,} {who}: k alone loses {percent(found.costs.alone)} of what the quasi-identifiers "
            f"tell, all of this {percent(found.costs.policy)}."
        )
    everywhere = len({(one.p, one.e) for one in found.diversity}) == 1
    for model, rules in found.policy.items():
        if model == "k":
            continue
        if everywhere and model == "p_sensitive":
            lines.append(_set(model, {"p": rules[0]["p"]}))
        elif len(rules) == 1:
            lines.append(_set(model, rules[0]))
        else:
            lines += [f"{model} = [", *(f"    {_toml(rule)}," for rule in rules), "]"]
    return lines


def _dearer(found: Profile, attribute: str) -> str:
    """What a rule costs, where it costs something."""
    loss = None if found.costs is None else found.costs.rules.get(attribute)
    if found.costs is None or loss is None or loss < NOTICED * found.costs.alone:
        return ""
    return f" With k and this rule alone the loss is {loss / found.costs.alone:.1f} times that of k."


def _comment(text: str) -> list[str]:
    """Wrapped lines; nothing of the text can end a comment before its time."""
    visible = "".join(c if c.isprintable() else " " for c in text)
    return [f"# {line}" for line in wrap(visible, WIDTH, break_long_words=False, break_on_hyphens=False)]


def _set(key: str, value: Any) -> str:
    return f"{key} = {_toml(value)}"


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_set(key, entry) for key, entry in value.items()) + " }"
    return str(tomlkit.item(value).as_string())


def _key(name: str) -> str:
    return str(tomlkit.key(name).as_string())
