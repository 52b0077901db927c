"""The road from a table to a verified release: algorithm, refinement, recoding, verification.

>>> import polars as pl, shoal
>>> frame = pl.DataFrame({"age": [21, 22, 40, 41], "illness": ["flu", "cold", "flu", "cold"]})
>>> data = shoal.Microdata.from_frame(frame, {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}})
>>> release = shoal.anonymize(data, shoal.KAnonymity(2), algorithm="mondrian", order="keep")
>>> release.frame["age"].to_list()
['[21, 22]', '[21, 22]', '[40, 41]', '[40, 41]']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np

from shoal.algorithms import most_suppressed, run, suppresses
from shoal.collisions import Recoding, published_classes
from shoal.configuration import Configuration
from shoal.declaration import examine
from shoal.engines.choosing import ENGINES
from shoal.engines.entry import beyond_memory, release_from
from shoal.engines.spark_session import is_spark
from shoal.engines.walk import Settings
from shoal.errors import (
    ConfigError,
    InternalError,
    UnsupportedError,
    VerificationError,
    require_a,
    require_seed,
    require_word,
)
from shoal.inputs import Roles, as_policy, encoded
from shoal.manifest import published_half, secret_half
from shoal.measures.loss import measure
from shoal.microdata import Microdata, encode_sensitive
from shoal.models import Model, Sensitive
from shoal.models.persons import Crowd
from shoal.partition import Partition
from shoal.policy import Policy, Rules, labelled
from shoal.progress import Progress, Told
from shoal.readable import require_readable
from shoal.recode import cellwise
from shoal.refine import Effort, refined
from shoal.refine.outliers import without_outliers
from shoal.release import Release, mask
from shoal.schema import Intervals, Order, Recode, Schema, Suppressed
from shoal.space import Measure
from shoal.verifier import verify


def anonymize(
    data: Any,
    policy: Policy | Model | Mapping[str, Any] | Configuration | str | Path,
    *,
    schema: Schema | Configuration | Mapping[str, Any] | str | Path | None = None,
    quasi: str | Iterable[str] = (),
    sensitive: str | Iterable[str] = (),
    person: str | None = None,
    algorithm: str = "auto",
    objective: Measure = "ncp",
    refine: Effort = True,
    suppress: float | None = None,
    seed: int = 0,
    recode: Recode = "generalize",
    intervals: Intervals = "text",
    order: Order = "shuffle",
    suppressed: Suppressed = "mask",
    engine: str = "memory",
    progress: Told | None = None,
    **options: Any,
) -> Release:
    """Mask a table so that it satisfies the policy, and prove it. Nothing is returned that has not passed.

    - `data`: the table: a pandas, polars, pyarrow or Spark frame, a file, or what `shoal.read` and `Microdata.from_frame` give.
    - `policy`: a model, several joined with `&`, a dictionary as in TOML (`{"k": 5, "p_sensitive": {"p": 3}}`) or a
      `shoal.toml`; every class of the release satisfies all of it (docs/models.md).
    - `schema`: who each column is, as for `Microdata.from_frame`; by default the names below say it.
    - `quasi`, `sensitive`: the columns that others may know, and those that must not be learnt. Where no schema is given,
      columns that are not named are left out. None by default.
    - `person`: the column that says whose each row is, where people have several rows; none by default.
    - `algorithm`: how classes are made (docs/algorithms.md). "auto", the default, tries those that suit the policy.
    - `objective`: the loss that is kept small: "ncp" (default), "il" or "granularity" (docs/measures.md#loss).
    - `refine`: whether a search follows that only ever lowers the loss: True (default, the same as "fast"), "thorough",
      a number of nominal seconds, or False.
    - `suppress`: the largest share of records that may be suppressed, where that lowers the loss. By default none are,
      but by datafly and three_layer, which have habits of their own (docs/algorithms.md#suppression).
    - `seed`: where all randomness comes from; 0 by default. The same table, settings and seed give the same bytes.
    - `recode`: what a class publishes: "generalize" (default: ranges, nodes, sets), "microaggregate" (means and modes)
      or "suppress" (single values blanked, as few as possible).
    - `intervals`: a range of numbers as "text" (default: `[17, 39]`), two "columns" (`age_min`, `age_max`) or its
      "midpoint".
    - `order`: the records are shuffled ("shuffle", the default: their order would tell who is who) or stay as they are
      ("keep").
    - `suppressed`: records that were suppressed are starred ("mask", the default) or left out ("drop").
    - `engine`: where the records are kept (docs/scale.md): "memory" (the default), "duckdb" for tables beyond it, or "auto":
      memory while a file fits. A release that is not in memory is written as Parquet, and its frame is a lazy one. Spark
      frames are masked where they are, whatever is said here, and the release's frame is one; `staging` then names a
      folder that the driver and all executors reach.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.
    - `options`: what else the algorithm itself takes, such as `mode="relaxed"` for mondrian.

    Returns a `Release`: the masked table, the evidence that it satisfies the policy, its losses, and a manifest. Raises
    `InfeasibleError` when no release of the table could satisfy the policy, and says why.

    >>> import polars as pl, shoal
    >>> frame = pl.DataFrame({"age": [21, 22, 40, 41], "illness": ["flu", "cold", "flu", "cold"]})
    >>> policy = {"k": 2, "p_sensitive": {"p": 2}}
    >>> release = shoal.anonymize(frame, policy, quasi="age", sensitive="illness", algorithm="mondrian", order="keep")
    >>> release.frame["age"].to_list()
    ['[21, 22]', '[21, 22]', '[40, 41]', '[40, 41]']
    >>> release.evidence.passed, round(release.measures.ncp, 3)
    (True, 0.05)
    """
    # A word that is not known must not become another one's meaning: "Shuffle" would keep the order.
    for what, word, words in (
        ("objective", objective, Measure),
        ("recode", recode, Recode),
        ("intervals", intervals, Intervals),
        ("order", order, Order),
        ("suppressed", suppressed, Suppressed),
    ):
        require_word(what, word, get_args(words))
    if isinstance(refine, str):
        require_word("refine", refine, ("fast", "thorough"))
    require_a("refine", refine, (bool, str, int, float), "true, false, fast, thorough or a number of seconds")
    require_a("algorithm", algorithm, str, "the name of an algorithm")
    require_seed(seed)
    if order == "keep":
        warnings.warn(
            "The records keep their order, and whoever knows the order of the original knows who is who; "
            'order = "shuffle" publishes them in another.',
            stacklevel=2,
        )
    told = Progress.of(progress)
    roles = Roles(schema, quasi, sensitive, person)
    require_word("engine", engine, ENGINES)
    if is_spark(data):
        engine = "spark"
    if engine != "memory" and beyond_memory(data, engine):
        given = Settings(
            algorithm, objective, refine, suppress, seed, recode, intervals, order, suppressed, options=options
        )
        return cast("Release", release_from(data, policy, roles, given, engine=engine, progress=told))
    data = encoded(data, roles, policy=policy)
    policy = as_policy(policy)
    if recode == "suppress":
        data, objective = cellwise(data), "il"
    asis = examine(data.table, data.schema).require()
    require_readable(data)
    if not policy.models:
        raise ConfigError("The policy is empty; write for example k = 5.")
    rules = data.rules(policy)
    if algorithm == "auto":
        # A search of less than a second is none to rely on.
        options = {**options, "refined": bool(refine) if isinstance(refine, bool | str) else refine >= 1}
    settings = {
        "algorithm": algorithm,
        "objective": objective,
        "refine": refine,
        "suppress": suppress,
        "seed": seed,
        "recode": recode,
        "intervals": intervals,
        "order": order,
        "suppressed": suppressed,
        "options": options,
    }
    partition = _grouped(data, rules, settings, told)
    settings["options"] = _as_written(options)
    with told.stage("masking", 0.05):
        how = Recoding(recode, intervals, drop=suppressed == "drop")
        partition, states = published_classes(data, partition, rules, data.space(objective), how)
        require_kept(data, partition, policy, how)
        masked, people = mask(
            data,
            partition,
            states,
            recode=recode,
            intervals=intervals,
            drop_suppressed=suppressed == "drop",
            shuffle_seed=seed if order == "shuffle" else None,
        )
    with told.stage("verifying", 0.03) as part:
        evidence = verify(masked, policy, data.schema, persons=people, progress=part)
    if not evidence.passed:
        try:
            evidence.require()
        except VerificationError as problem:
            raise InternalError(
                f"{algorithm} made a table that failed verification, nothing was released. {problem}"
            ) from None
    with told.stage("measuring") as part:
        measures = measure(data, partition, rules.k, states, suppressed=suppressed, progress=part)
    told.check()
    return Release(
        masked,
        policy,
        evidence,
        measures,
        published_half(masked, data, policy, evidence, measures, settings),
        secret_half(data, measures, settings, partition.notes, asis),
        data,
        partition,
        people,
    )


def _as_written(options: dict[str, Any]) -> dict[str, Any]:
    """Options as somebody could write them: a preparation by what it was made with."""
    ready = options.get("preparation")
    if ready is None:
        return options
    rest = {name: value for name, value in options.items() if name != "preparation"}
    return rest | {name: value for name, value in ready.made_with.items() if value is not None}


def _grouped(data: Microdata, rules: Rules, settings: dict[str, Any], told: Progress) -> Partition:
    """The classes: found by the algorithm, refined, without outliers where some may go, and refined again."""
    algorithm, refine, suppress = settings["algorithm"], settings["refine"], settings["suppress"]
    aim = {name: settings[name] for name in ("objective", "seed")}
    drop = settings["suppressed"] == "drop"
    allowed = 0 if suppress is None else most_suppressed(suppress, data.n)
    # Who is left out moves the distributions that such a policy compares classes with; some algorithms look after that.
    moves = drop and not rules.superset_closed
    if allowed and moves and not suppresses(algorithm):
        raise UnsupportedError(_MOVES)
    # A search that follows takes most of the time.
    with told.stage("grouping records", 0.2 if refine else 0.85) as part:
        partition = run(algorithm, data, rules, **aim, progress=part, suppress=suppress, options=settings["options"])
    require_publishable(rules, partition, drop=drop)
    if refine:
        with told.stage("refining", 0.4 if allowed else 0.7) as part:
            partition = refined(data, rules, partition, **aim, effort=refine, progress=part)
    if allowed and not moves:
        before, objective = partition, settings["objective"]
        with told.stage("suppressing outliers", 0.05) as part:
            partition = without_outliers(
                data, rules, before, objective=objective, allowed=allowed, drop=drop, progress=part
            )
        if refine and partition is not before:
            with told.stage("refining", 0.25) as part:
                partition = refined(data, rules, partition, **aim, effort=refine, progress=part)
    if suppress is not None and partition.suppressed > allowed:
        raise InternalError(f"{algorithm} suppressed {partition.suppressed} records where {allowed} are allowed")
    return partition


def require_publishable(rules: Rules, partition: Partition, *, drop: bool) -> None:
    """Suppressed records that stay are a class like any other; those that leave move the table's distributions."""
    away = np.flatnonzero(partition.labels < 0)
    if len(away) == 0:
        return
    if not drop and not rules.ok(away):
        raise UnsupportedError(
            f"{len(away)} records were suppressed and are too few or too alike to be a class of their own; "
            'leave them out with suppressed = "drop", or use an algorithm that suppresses none.'
        )
    if drop and not rules.superset_closed and partition.notes.get("outliers") is None:
        raise UnsupportedError(_MOVES)


_MOVES = (
    "This policy compares classes with the whole table, which changes when suppressed records are left out; "
    'publish them masked with suppressed = "mask", or let none be suppressed.'
)


def require_kept(data: Microdata, partition: Partition, policy: Policy, how: Recoding) -> None:
    """Where records are left out, every class must be good by the table that remains: it is all that a reader has."""
    kept = np.flatnonzero(partition.labels >= 0)
    if not how.drop or len(kept) == partition.n:
        return
    rows, people = (kept, None) if data.persons is None else data.persons.take(kept)
    frame = data.table[rows]
    columns: list[Sensitive | Crowd] = [
        encode_sensitive(frame, name, data.schema) for name in data.schema.named("sensitive")
    ]
    if people is not None:
        columns = [Crowd(one, people.of_row, people.count) for one in columns if isinstance(one, Sensitive)]
    rules = policy.bind(labelled(columns, policy, frame), len(kept))
    if (rules.deficits(partition.labels[kept], partition.classes) > 0).any():
        raise UnsupportedError(
            "Without the suppressed records the table is another one, and the policy does not hold in it; publish them "
            'masked with suppressed = "mask", or use an algorithm that suppresses none.'
        )
