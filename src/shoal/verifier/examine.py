"""A masked table against a policy, and against every model there is."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.errors import ConfigError, InputError
from shoal.models import MODELS, Model, Rule
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.transform import require_transformed
from shoal.verifier.classes import derive_classes, published_quasi
from shoal.verifier.evidence import SHOWN, Check, Evidence, Strength, Violation
from shoal.verifier.judging import judge
from shoal.verifier.sensitive import AuditedColumn, audited_column

Ints = NDArray[np.int64]


def verify(masked: pl.DataFrame, policy: Policy, schema: Schema) -> Evidence:
    """Group a masked table by its published quasi-identifiers and test every class. It trusts nothing but the table.

    - `masked`: the table as it is published, whoever made it.
    - `policy`: what every class has to satisfy.
    - `schema`: who each column is, as for the original (`shoal.verifier.masked_schema` leaves out what was not published).

    Returns the evidence, whether or not the policy holds; `evidence.require()` raises where it does not.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"], "illness": ["flu", "cold", "flu"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> evidence = shoal.verify(masked, shoal.KAnonymity(2) & shoal.PSensitive(2), schema)
    >>> evidence.passed, [check.strongest for check in evidence.checks]
    (False, [1.0, 1.0])
    >>> print(evidence.violations[0])
    class (age = [30, 39]) with 1 record fails k_anonymity(k = 2) by 1
    """
    require_transformed(masked, schema)
    labels, groups, columns = _opened(masked, schema, policy)
    rules = policy.bind(columns, masked.height).rules
    sizes = np.bincount(labels, minlength=groups.height).astype(np.int64)
    strongest, deficits = judge(rules, labels, sizes, columns)
    checks, violations = [], []
    for rule, best, row in zip(rules, strongest, deficits, strict=True):
        failing = np.flatnonzero(row > 0)
        main = rule.model.main
        required = float(getattr(rule.model, main))
        checks.append(Check(str(rule), rule.model.name, rule.attribute, main, required, best, len(failing)))
        worst = failing[np.argsort(-row[failing], kind="stable")][: 10 * SHOWN]
        violations += [
            Violation(str(rule), groups.row(int(c), named=True), int(sizes[c]), float(row[c])) for c in worst
        ]
    return Evidence(
        records=masked.height,
        classes=groups.height,
        smallest=int(sizes.min()),
        largest=int(sizes.max()),
        checks=tuple(checks),
        violations=tuple(violations),
    )


def audit(masked: pl.DataFrame, schema: Schema, policy: Policy | None = None) -> list[Strength]:
    """Judge a masked table by every model there is, for every sensitive attribute that the model applies to.

    - `masked`, `schema`: the table as it is published, and who each column is.
    - `policy`: where further parameters come from, for the models it names; a model's own examples serve for the others.

    A model with several forms is tried in each. Models that need what the schema does not declare (an order, a
    taxonomy, categories, protected nodes) are left out. Returns one `Strength` a model, form and attribute.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]"] * 4, "illness": ["flu", "cold", "flu", "ulcer"]})
    >>> schema = shoal.Schema({"age": shoal.Attribute(role="quasi"), "illness": shoal.Attribute(role="sensitive")})
    >>> {found.model: found.strongest for found in shoal.audit(masked, schema)}["alpha_k"]
    0.5
    """
    labels, groups, columns = _opened(masked, schema, policy)
    sizes = np.bincount(labels, minlength=groups.height).astype(np.int64)
    rules: list[Rule] = []
    for model in _probes(policy):
        for column in columns if model.per_attribute else [None]:
            # Without protected nodes this is p-sensitivity again.
            if column is not None and model.name == "extended_p_sensitive" and not column.protect:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    rules.append(model.bind(column, masked.height))
                except ConfigError:
                    continue
    strongest, _ = judge(rules, labels, sizes, columns)
    found = []
    for rule, best in zip(rules, strongest, strict=True):
        settings = {key: value for key, value in rule.model.parameters().items() if key not in _unfixed(rule.model)}
        found.append(Strength(rule.model.name, rule.attribute, rule.model.main, best, settings))
    return found


def _probes(policy: Policy | None) -> list[Model]:
    """The policy's models, and one example of every form of every model."""
    chosen: dict[tuple[Any, ...], Model] = {}
    for model in policy.models if policy is not None else ():
        shown = {key: value for key, value in model.parameters().items() if key not in _unfixed(model)}
        chosen.setdefault((model.name, repr(sorted(shown.items(), key=lambda item: item[0]))), model)
    named = {(model.name, _form(model)) for model in chosen.values()}
    for kind in MODELS.values():
        for model in kind.examples():
            form = (model.name, _form(model))
            if form not in named:
                named.add(form)
                chosen[form] = model
    return sorted(chosen.values(), key=lambda model: model.name)


def _form(model: Model) -> tuple[tuple[str, str], ...]:
    """The words among a model's parameters: which of its forms this is."""
    words = {name: value for name, value in model.parameters().items() if isinstance(value, str)}
    return tuple((name, value) for name, value in sorted(words.items()) if name != "attribute")


def _unfixed(model: Model) -> tuple[str, str]:
    return model.main, "attribute"


def _opened(
    masked: pl.DataFrame, schema: Schema, policy: Policy | None
) -> tuple[Ints, pl.DataFrame, list[AuditedColumn]]:
    quasi = published_quasi(masked, schema)
    if masked.height == 0:
        raise InputError("The masked table has no records.")
    labels, groups = derive_classes(masked, quasi)
    columns = [audited_column(masked, name, schema) for name in schema.named("sensitive")]
    for model in policy.models if policy is not None else ():
        guard, wanted = getattr(model, "guard", None), getattr(model, "attribute", None)
        if isinstance(guard, str) and guard in masked.columns:
            nodes = np.array(masked[guard].cast(pl.String).to_list(), dtype=object)
            columns = [replace(c, guards=nodes) if wanted in (None, c.name) else c for c in columns]
    return labels, groups, columns
