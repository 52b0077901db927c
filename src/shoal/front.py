"""The questions people ask of tables, in one call each: does it keep its promise, what would an intruder learn, what was lost?

Frames of pandas, polars and pyarrow and files are taken alike, and tables in the answers (`frame`) come back in the library
that came in. The command line asks the same functions.

>>> import polars as pl, shoal
>>> masked = pl.DataFrame({"age": ["[20, 29]"] * 2 + ["[30, 39]"] * 2, "illness": ["flu", "cold", "flu", "flu"]})
>>> shoal.verify(masked, {"k": 2}, quasi="age", sensitive="illness").passed
True
>>> [found.exposed for found in shoal.attack(masked, quasi="age", sensitive="illness").exposures]
[2, 2, 0]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.algorithms import names
from shoal.configuration import Configuration
from shoal.declaration import Examination, examine
from shoal.errors import ConfigError, require_a, require_seed, require_switch, require_whole, require_word
from shoal.inputs import Roles, as_policy, declared, encoded, people_of, table_of
from shoal.io.frames import from_polars
from shoal.io.written import Written, read_written
from shoal.measures.attacks import linking, run_attacks
from shoal.measures.exposure import Exposure
from shoal.measures.masked import MaskedMeasures, measure_masked
from shoal.measures.minimality import minimality_attack
from shoal.measures.releases import attack_releases
from shoal.measures.risk import Risks, Uniqueness, dankar, population_sizes, reidentification_risk
from shoal.measures.seen import MaskedTable
from shoal.measures.utility import Classification, QueryError, classification, query_error
from shoal.models.alpha_k import AlphaK
from shoal.models.k_anonymity import KAnonymity
from shoal.policy import Policy
from shoal.progress import Progress, Told
from shoal.release import Release
from shoal.schema import Schema
from shoal.shown import Shown
from shoal.verifier import Evidence, assumed_roles, assumed_schema, masked_schema
from shoal.verifier import verify as judged

MINIMAL = ("incognito", "datafly", "mondrian")
"""Algorithms that generalize only as far as they must, which tells something."""
RULED_OUT = 1_000
"""Values that an intruder may rule out: more are not known of anybody."""
QUERIES = 10_000_000
"""Queries that may be compared: some hours of them."""


def verify(
    masked: Any,
    policy: Any = None,
    schema: Any = None,
    *,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    progress: Told | None = None,
) -> Evidence:
    """Group a masked table by its published quasi-identifiers and test every class. It trusts nothing but the table.

    - `masked`: the table as it is published, whoever made it: a frame, or a file, which is judged as it is written. A
      `Release` is verified again by its own policy.
    - `policy`: what every class has to satisfy: a model, several joined with `&`, a dictionary as in TOML, or a
      `shoal.toml`.
    - `schema`: who each column is, as for the original; columns that it does not know are refused.
    - `quasi`, `sensitive`: or just the names of columns; none by default. Without either the roles are those that the
      columns seem to have, and the notes say which.
    - `person`: the column with a token for each person, where the table has one; none by default. Without it rows are
      counted.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Where two spellings mean the same, the policy has to hold both for what is written and for what it means. Returns the
    evidence, whether or not the policy holds; `evidence.require()` raises where it does not.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]", "[20, 29]", "[30, 39]"], "illness": ["flu", "cold", "flu"]})
    >>> evidence = shoal.verify(masked, {"k": 2, "p_sensitive": {"p": 2}}, quasi="age", sensitive="illness")
    >>> evidence.passed, [check.strongest for check in evidence.checks]
    (False, [1.0, 1.0])
    >>> print(evidence.violations[0])
    class (age = [30, 39]) with 1 record fails k_anonymity(k = 2) by 1
    """
    roles = Roles(schema, quasi, sensitive, person)
    if isinstance(masked, Release):
        if policy is not None or roles.given:
            raise ConfigError("a release is verified by its own policy and roles; verify its frame to ask for others.")
        return masked.verify()
    if policy is None:
        raise ConfigError('nothing says what to verify; give a policy, such as {"k": 5}.')
    wanted = as_policy(policy)
    known = _schema(roles, policy)
    table, written, backend = _opened(masked, known.missing if known is not None else Schema({}).missing)
    notes: tuple[str, ...] = ()
    if known is None:
        assumed = assumed_roles(table)
        known = assumed_schema(assumed)
        notes = tuple(f"Column '{one.name}' is taken for {one.role}: {one.why}." for one in assumed)
    cells, alike = (written.cells, written.alike) if written is not None else (None, None)
    evidence = judged(table, wanted, masked_schema(known, table), cells=cells, alike=alike, progress=progress)
    return replace(evidence, notes=notes + evidence.notes, backend=backend)


def _opened(masked: Any, missing: tuple[str, ...]) -> tuple[pl.DataFrame, Written | None, str]:
    """A masked table, how it is written where it is a file, and the library of the answer."""
    if isinstance(masked, str | Path):
        written = read_written(masked, missing=missing)
        return written.table, written, "polars"
    table, backend = table_of(masked, missing)
    return table, None, backend


def _schema(roles: Roles, policy: Any = None) -> Schema | None:
    """Who the columns of a masked table are; None where nobody says. A person column that is there is a token."""
    schema = roles.schema
    if schema is None and isinstance(policy, Configuration | str | Path):
        schema = policy
    if schema is None and not (roles.quasi or roles.sensitive):
        if roles.person is not None:
            raise ConfigError("a person alone is no schema; name the quasi-identifiers too.")
        return None
    found = declared(roles._replace(schema=schema, person=None))
    if roles.schema is None and schema is None:
        # Whoever names columns of a masked table names all of them: what is not named must not be there.
        found = Schema(
            {name: one for name, one in found.attributes.items() if name != "*"}, found.folder, found.missing
        )
    return found.with_person(roles.person, published=True)


@dataclass(frozen=True, eq=False)
class Attacks(Shown):
    """What an intruder learns from a masked table; `shoal.attack` makes it.

    - `records`, `classes`: how many there are (persons, where a token says whose each row is).
    - `risks`: the risk of being found, by kind of intruder (docs/measures.md#risk).
    - `exposures`: what each attack found (docs/measures.md#attacks).
    - `published`: what was found about the columns that are published as they are.
    - `uniqueness`: unique persons in the population, where the sampled share was given; none by default.
    - `notes`: attacks that were not tried, and why; none by default.

    >>> import polars as pl, shoal
    >>> found = shoal.attack(pl.DataFrame({"age": ["[20, 29]"] * 3, "illness": ["flu"] * 3}), quasi="age", sensitive="illness")
    >>> found.exposures[0].sentence
    "In 1 of 1 class everybody has the same 'illness', so who is known to be in one of them is exposed: 3 of 3 records."
    >>> found.frame.columns
    ['attack', 'attribute', 'exposed', 'share', 'classes', 'worst']
    """

    records: int
    classes: int
    risks: Risks
    exposures: tuple[Exposure, ...]
    published: Examination
    uniqueness: Uniqueness | None = None
    notes: tuple[str, ...] = ()
    backend: str = field(default="polars", repr=False)

    @property
    def frame(self) -> Any:
        """The attacks as a table, one row each, in the library that came in."""
        rows = [
            {
                "attack": one.attack,
                "attribute": one.attribute,
                "exposed": one.exposed,
                "share": one.share,
                "classes": len(one.classes),
                "worst": one.worst,
            }
            for one in self.exposures
        ]
        return from_polars(pl.DataFrame(rows), self.backend)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told: dict[str, Any] = {
            "records": self.records,
            "classes": self.classes,
            "risk": self.risks.to_dict(),
            "attacks": [one.to_dict() for one in self.exposures],
            "notes": list(self.notes),
            "published_as_it_is": self.published.to_dict(),
        }
        return told if self.uniqueness is None else {**told, "uniqueness": self.uniqueness.to_dict()}


def attack(
    masked: Any,
    schema: Any = None,
    *,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    external: Any = None,
    previous: Sequence[Any] = (),
    population: Any = None,
    fraction: float | None = None,
    strength: int = 1,
    policy: Any = None,
    algorithm: str | None = None,
    progress: Told | None = None,
) -> Attacks:
    """Run every attack that the tables allow on a masked one, and say who is exposed.

    - `masked`: the table as it is published: a frame, a file, or a `Release`.
    - `schema`, `quasi`, `sensitive`, `person`: who its columns are, as for `verify`; nothing by default.
    - `external`: what the intruder has: persons with some or all quasi-identifiers; nothing by default.
    - `previous`: earlier releases of the same table, oldest first; none by default.
    - `population`: all persons the table was drawn from; none by default.
    - `fraction`: which share of the population the table holds; unknown by default.
    - `strength`: how many values an intruder can rule out; 1 by default.
    - `policy`: what the table promises, whose k attacks over several releases ask for; by default the smallest class there
      is. With the `algorithm` that made the table and an `external` list, the minimality attack is tried where it applies.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the risks, what each attack found, and what is published as it is.

    >>> import polars as pl, shoal
    >>> masked = pl.DataFrame({"age": ["[20, 29]"] * 2 + ["[30, 39]"] * 2, "illness": ["flu", "cold", "flu", "flu"]})
    >>> found = shoal.attack(masked, {"age": "quasi", "illness": "sensitive"}, external=pl.DataFrame({"age": [25, 31]}))
    >>> found.risks.prosecutor.highest, found.exposures[-1].attack
    (0.5, 'linking')
    """
    require_a("previous", previous, (list, tuple), "a list of tables, oldest first")
    require_a("fraction", fraction, (int, float, type(None)), "a share of the population, above 0 and at most 1")
    require_whole("strength", strength, 1, RULED_OUT)
    if algorithm is not None:
        require_word("algorithm", algorithm, names())
    if isinstance(masked, Release):
        masked, schema = masked.masked, masked.data.schema if schema is None else schema
    roles, told = Roles(schema, quasi, sensitive, person), Progress.of(progress)
    with told.stage("reading", 0.1):
        known = _schema(roles)
        table, _, backend = _opened(masked, known.missing if known is not None else Schema({}).missing)
        known = masked_schema(known if known is not None else assumed_schema(assumed_roles(table)), table)
        missing = known.missing
        seen = MaskedTable.of(table, known)
        persons = people_of(external, known) if external is not None else None
    with told.stage("risks", 0.2):
        fits = population_sizes(seen, people_of(population, known)) if population is not None else None
        risks = reidentification_risk(seen.sizes, fits)
        found = run_attacks(seen, strength=strength)
    notes: tuple[str, ...] = ()
    wanted = as_policy(policy) if policy is not None else None
    if persons is not None:
        with told.stage("linking", 0.2) as part:
            found.append(linking(seen, persons, progress=part).exposure)
        with told.stage("minimality", 0.2) as part:
            tried, notes = _minimality(seen, persons, wanted, algorithm, part)
        found += tried
    if previous:
        with told.stage("comparing releases", 0.2) as part:
            releases = [table_of(one, missing)[0] for one in previous]
            found += attack_releases([*releases, table], known, _smallest(wanted, seen), persons, progress=part)
    with told.stage("columns published as they are"):
        published = examine(table, known)
    return Attacks(
        seen.n,
        len(seen.sizes),
        risks,
        tuple(found),
        published,
        dankar(seen.sizes, fraction) if fraction is not None else None,
        notes,
        backend,
    )


def _smallest(policy: Policy | None, table: MaskedTable) -> int:
    """The policy's k, or the smallest class there is."""
    asked = [model.k for model in (policy.models if policy is not None else ()) if isinstance(model, KAnonymity)]
    return int(max(asked)) if asked else int(table.sizes.min())


def _minimality(
    table: MaskedTable, persons: pl.DataFrame, policy: Policy | None, algorithm: str | None, progress: Progress
) -> tuple[list[Exposure], tuple[str, ...]]:
    """The minimality attack where the policy limits shares and the algorithm generalizes no more than it must."""
    shares = [model for model in (policy.models if policy is not None else ()) if isinstance(model, AlphaK)]
    if not shares or algorithm is None:
        return [], ()
    if algorithm not in MINIMAL:
        return [], (f"Minimality does not apply: {algorithm} does not generalize only as far as it must.",)
    found = []
    for model in shares:
        names = [model.attribute] if model.attribute else [one.column.name for one in table.histograms]
        for name in names:
            with progress.stage(weight=1 / (len(shares) * len(names))) as part:
                found.append(minimality_attack(table, persons, float(model.alpha), name, progress=part))
    return found, ()


@dataclass(frozen=True, eq=False)
class Measured(Shown):
    """What a masked table lost against its original; `shoal.measure` makes it.

    - `measures`: every loss measure, in total and by attribute (docs/measures.md#loss).
    - `notes`: what could not be measured, and why.
    - `queries`, `classifier`: what an analyst keeps, where that was asked for; none by default.

    >>> import polars as pl, shoal
    >>> original = pl.DataFrame({"age": [20, 30, 40, 60]})
    >>> masked = pl.DataFrame({"age": ["[40, 60]", "[20, 30]", "[40, 60]", "[20, 30]"]})
    >>> found = shoal.measure(original, masked, quasi="age")
    >>> found.measures.ncp, found.frame["ncp"].to_list()
    (0.375, [0.375])
    """

    found: MaskedMeasures
    queries: QueryError | None = None
    classifier: Classification | None = None
    backend: str = field(default="polars", repr=False)

    @property
    def measures(self) -> Any:
        """Totals, and losses by attribute."""
        return self.found.measures

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be measured."""
        return self.found.notes

    @property
    def frame(self) -> Any:
        """The losses by attribute as a table, in the library that came in."""
        rows = [{"attribute": name, **shares} for name, shares in self.measures.attributes.items()]
        return from_polars(pl.DataFrame(rows), self.backend)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told: dict[str, Any] = self.found.to_dict()
        if self.queries is not None:
            told["query_error"] = self.queries.to_dict()
        if self.classifier is not None:
            told["classification"] = self.classifier.to_dict()
        return told


def measure(
    original: Any,
    masked: Any,
    schema: Any = None,
    *,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    policy: Any = None,
    aligned: bool = False,
    averages: bool = False,
    queries: int = 0,
    predict: str | None = None,
    seed: int = 0,
    progress: Told | None = None,
) -> Measured:
    """Every loss measure of a masked table, whoever made it and in whatever order its records are.

    - `original`, `masked`: the two tables: frames or files.
    - `schema`, `quasi`, `sensitive`, `person`: who the columns of the original are, as for `anonymize`; nothing by default.
    - `policy`: whose k `avg` and `dm` measure class sizes against; none by default, which is 1.
    - `aligned`: says that both tables have the same records in the same order; False by default.
    - `averages`: says that published values are means and modes; False by default.
    - `queries`: how many random counting queries to compare; 0 by default, none.
    - `predict`: a column that a classifier shall predict on both tables; none by default.
    - `seed`: of the queries and the classifier; 0 by default.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the measures.

    >>> import polars as pl, shoal
    >>> original = pl.DataFrame({"age": [20, 30, 40, 60], "illness": ["flu", "cold", "flu", "flu"]})
    >>> release = shoal.anonymize(original, {"k": 2}, quasi="age", sensitive="illness", algorithm="mondrian", refine=False)
    >>> shoal.measure(original, release.frame, quasi="age", sensitive="illness").measures.classes
    2
    """
    require_switch("aligned", aligned)
    require_switch("averages", averages)
    require_whole("queries", queries, 0, QUERIES)
    require_a("predict", predict, (str, type(None)), "the name of a column")
    require_seed(seed)
    told, answers, learned = Progress.of(progress), None, None
    with told.stage("reading", 0.1):
        data = encoded(original, Roles(schema, quasi, sensitive, person), policy=policy)
        table, _ = table_of(masked.masked if isinstance(masked, Release) else masked, data.schema.missing)
    with told.stage("losses", 0.2):
        k = 1 if policy is None else data.rules(as_policy(policy)).k
        found = measure_masked(data, table, k, aligned=aligned, averages=averages)
    if queries:
        with told.stage("queries", 0.3) as part:
            answers = query_error(data, table, queries=queries, seed=seed, progress=part)
    if predict is not None:
        with told.stage("classification") as part:
            learned = classification(data, table, predict, seed=seed, progress=part)
    return Measured(found, answers, learned, data.backend)
