"""The road from a table that nobody holds in memory to a verified release: written once, for every engine.

Learn the values, cut the table into blocks that satisfy the policy, solve them one by one, put the rows into an order that tells
nothing, and verify what is staged from its published values alone. Nothing gets its name before that.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from hmac import new as hmac
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.algorithms import BLOCKED, names, suppresses
from shoal.algorithms.common import require_one_class
from shoal.algorithms.options import require_options
from shoal.declaration import SAMPLE, Examination, examine_counted
from shoal.engines.base import COUNT, Engine
from shoal.engines.choosing import CELL, RECORD
from shoal.engines.corners import Part, coded_arrays
from shoal.engines.cutting import Cutting, CutTree
from shoal.engines.guessing import Sample
from shoal.engines.judging import verify_staged
from shoal.engines.learning import MOST, Learned, learn
from shoal.engines.solving import Solver
from shoal.errors import ConfigError, InternalError, UnsupportedError, VerificationError, did_you_mean
from shoal.io.files import FORMULA
from shoal.manifest import by_itself, published_entries, secret_half
from shoal.measures.folding import Whole
from shoal.measures.loss import Measures
from shoal.microdata import Microdata, Missing
from shoal.policy import Policy, Stats
from shoal.progress import Progress, Told
from shoal.recode import cellwise
from shoal.refine import Effort
from shoal.release import file_digest, write_release
from shoal.schema import Intervals, Order, Recode, Schema
from shoal.shown import written
from shoal.space import Domain, Interval, Measure, Set
from shoal.verifier import Evidence

Ints = NDArray[np.int64]

BLOCK = 100_000
"""Records of a block that any algorithm and its refinement solves; larger ones lose hardly less (docs/scale.md#blocks)."""
CUT = 1_000_000
"""Records of a block that Mondrian goes on cutting: as many as fit easily, since only the time of a walk depends on it."""
GUESSED = 50_000
"""Records that are looked at to guess cuts: with fewer, more of 30 million wait for a second walk."""


@dataclass(frozen=True)
class Settings:
    """How a table is masked; the words and defaults are those of `shoal.anonymize`."""

    algorithm: str = "auto"
    objective: Measure = "ncp"
    refine: Effort = True
    suppress: float | None = None
    seed: int = 0
    recode: Recode = "generalize"
    intervals: Intervals = "text"
    order: Order = "shuffle"
    suppressed: str = "mask"
    missing: Missing = "category"
    options: Mapping[str, Any] = field(default_factory=dict)
    blocks: int | None = None
    """Records of a block; by default what suits the algorithm, and fits."""
    room: int = 1 << 30
    """Bytes that the records of one block, and the counts of one walk, may take where they are worked on."""

    def told(self) -> dict[str, Any]:
        """As the secret half of a manifest keeps them."""
        names = ("algorithm", "objective", "refine", "suppress", "seed", "recode", "intervals", "order", "suppressed")
        found = {name: getattr(self, name) for name in names}
        return {**found, "options": {**self.options, **({} if self.blocks is None else {"blocks": self.blocks})}}


@dataclass(frozen=True, eq=False)
class LargeRelease:
    """A masked table that has passed verification and lies with its engine; `write` gives it its name.

    `evidence`, `measures`, `manifest` and `secret` are those of a `Release`; `tree` says how the table was cut.
    """

    engine: Engine
    policy: Policy
    evidence: Evidence
    measures: Measures
    manifest: Mapping[str, Any]
    secret: Mapping[str, Any] = field(repr=False)
    tree: CutTree = field(repr=False)
    digest: bytes = field(repr=False)
    """Of the source, for the commitment."""
    learned: Learned = field(repr=False)
    """What is known of the source without any of its records."""

    def __repr__(self) -> str:
        """What it is, without any of its records."""
        found = self.evidence
        return f"<LargeRelease of {found.records:,} records in {found.classes:,} classes; {self.policy} holds>"

    def write(
        self,
        path: str | Path,
        *,
        force: bool = False,
        safe_csv: bool = False,
        key: bytes | None = None,
        progress: Progress | None = None,
    ) -> Path:
        """Put the verified table at `path`, a .parquet or text file, with its manifest and its secret half; all of them or none.

        `force`, `safe_csv`, `key`, `progress`: as for a `Release`. Returns the path.
        """
        from shoal.engines.texts import require_format

        target = Path(path)
        require_format(target)
        own = key or secrets.token_bytes(32)

        def put(file: Path) -> dict[str, str]:
            self.engine.write(file, target, safe_csv)
            return self.named(file_digest(file), own)

        return write_release(target, self.manifest, self.secret, own, put, force=force, progress=progress)

    def named(self, digest: str, key: bytes) -> dict[str, str]:
        """What both halves of the manifest are told when the table is written."""
        return {"output_sha256": digest, "input_commitment": hmac(key, self.digest, sha256).hexdigest()}

    def formulas(self) -> dict[str, int]:
        """How many cells of each column a spreadsheet would run as formulas, where there are any."""
        empty = self.engine.staged_columns()
        names = [name for name, dtype in empty.schema.items() if dtype == pl.String]
        found = {}
        for name, counted in zip(
            names, self.engine.value_counts([[name] for name in names], most=MOST, staged=True), strict=True
        ):
            runs = pl.Series(counted.column(name)).str.contains(FORMULA).fill_null(False)
            found[name] = int(pl.Series(counted.column(COUNT)).filter(runs).sum())
        return {name: count for name, count in found.items() if count}

    def report(self, path: str | Path, for_: str = "owner") -> Path:
        """Write a report that people read before they sign, as for a `Release`; before `close`, since the engine counts for it.

        What only the records could tell (how many persons a list finds, how far counts are off, the proven least) is left out,
        with the reason.
        """
        return Path(written(self, path, for_))

    @property
    def frame(self) -> Any:
        """The masked table where it lies, in the engine's own kind of frame."""
        return self.engine.frame()

    def close(self) -> None:
        """Remove what the engine kept; a release that was not written is gone then."""
        self.engine.discard()

    def __enter__(self) -> LargeRelease:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def walk(
    engine: Engine,
    schema: Schema,
    policy: Policy,
    settings: Settings | None = None,
    *,
    as_text: bool = False,
    progress: Told | None = None,
) -> LargeRelease:
    """Mask the table that an engine holds so that it satisfies the policy, and prove it from what is staged alone.

    - `engine`: where the records are; `schema`, `policy`: as for `shoal.anonymize`; `settings`: how; defaults by default.
    - `as_text`: whether the source has texts only, of which whole columns may be numbers.
    - `progress`: called with the share that is done, or a `shoal.Progress`; nothing by default.

    Returns the release, staged. Whatever goes wrong, the engine is left empty.
    """
    settings = settings or Settings()
    told = Progress.of(progress)
    try:
        return _walked(engine, schema, policy, settings, as_text, told)
    except BaseException:
        engine.discard()
        raise


def _walked(
    engine: Engine, schema: Schema, policy: Policy, settings: Settings, as_text: bool, told: Progress
) -> LargeRelease:
    settings = _chosen(settings)
    if not policy.models:
        raise ConfigError("The policy is empty; write for example k = 5.")
    with told.stage("counting values", 0.1):
        learned = learn(engine, schema, policy, missing=settings.missing, as_text=as_text)
        if settings.recode == "suppress":
            learned, settings = replace(learned, data=cellwise(learned.data)), replace(settings, objective="il")
        _require_feasible(learned, settings)
    with told.stage("encoding", 0.1):
        engine.encode(learned.books)
        digest = engine.fingerprint()
        sample = engine.sample(GUESSED)
        found = _examined(engine, learned, sample.gather_every(max(1, sample.height // SAMPLE)))
    space = learned.data.space(settings.objective)
    whole = Whole.of_counts(space, learned.rules.k, learned.counts)
    size = _size(settings, len(learned.coded))
    solver = Solver(
        learned,
        whole,
        settings.algorithm,
        settings.objective,
        settings.refine,
        settings.recode,
        settings.intervals,
        settings.seed,
        settings.options,
        size,
    )
    with told.stage("cutting", 0.15) as part:
        tree = cut(engine, learned, solver, sample, part, settings.room // 2)
    with told.stage("solving blocks", 0.35) as part:
        tally = engine.solve(tree, solver, part)
    if tally.records != learned.n:
        raise InternalError(f"{learned.n} records went in and {tally.records} came out")
    with told.stage("ordering", 0.1):
        numbers = [name for name in solver.numbers if name not in tally.fractions]
        engine.publish(numbers)
    with told.stage("verifying", 0.2):
        evidence, shown_as = verify_staged(engine, policy, learned.data.schema, learned.n)
    if not evidence.passed:
        try:
            evidence.require()
        except VerificationError as problem:
            raise InternalError(
                f"{settings.algorithm} made a table that failed verification, nothing was released. {problem}"
            ) from None
    measures = tally.measures(learned.data.quasi, whole)
    notes = {"engine": {"blocks": len(tree.parts), "records": size, "walks": tree.jobs, "levels": tree.levels}}
    kept = {**settings.told(), "engine": engine.name}
    return LargeRelease(
        engine,
        policy,
        evidence,
        measures,
        published_entries(by_itself(shown_as), learned.data, policy, evidence, measures, kept),
        secret_half(learned.data, measures, kept, notes, found, learned.n + learned.data.dropped),
        tree,
        digest,
        learned,
    )


def _chosen(settings: Settings) -> Settings:
    """The algorithm, chosen once and for all blocks; what only works on whole tables is refused."""
    name = "mondrian" if settings.algorithm == "auto" else settings.algorithm
    if name not in names():
        raise ConfigError(f"algorithm = '{name}': no such algorithm; {did_you_mean(name, names())}")
    if name != "mondrian" and name not in BLOCKED:
        raise UnsupportedError(
            f"{name} looks at the whole table at once and cannot work block by block; use mondrian, "
            f'{", ".join(BLOCKED)}, or engine = "memory".'
        )
    if suppresses(name) or settings.suppress:
        raise UnsupportedError('Records are suppressed in memory only; leave out suppress, or use engine = "memory".')
    if settings.options.get("mode") == "relaxed":
        raise UnsupportedError('mode = "relaxed" separates equal values by the order of records; use mode = "strict".')
    if settings.order not in ("shuffle", "keep"):
        raise ConfigError(f"order = '{settings.order}' is not allowed; it is shuffle or keep.")
    if settings.order == "keep":
        raise UnsupportedError(
            'order = "keep" needs the order of the source, which is not kept beyond memory; use order = "shuffle".'
        )
    options = {name: value for name, value in settings.options.items() if name != "blocks"}
    require_options(name, options)
    blocks = settings.options.get("blocks", settings.blocks)
    if blocks is not None and (not isinstance(blocks, int) or isinstance(blocks, bool) or blocks < 1):
        raise ConfigError(f"blocks = {blocks!r} is not allowed; it is the number of records of a block.")
    return replace(settings, algorithm=name, options=options, blocks=blocks)


def _size(settings: Settings, columns: int) -> int:
    """Records of a block."""
    if settings.blocks is not None:
        return settings.blocks
    wanted = CUT if settings.algorithm == "mondrian" and settings.refine is False else BLOCK
    return max(1, min(wanted, settings.room // (RECORD + CELL * columns)))


def _require_feasible(learned: Learned, settings: Settings) -> None:
    """What no release of the table can satisfy is refused before any record is looked at."""
    rules = learned.rules
    rules.require_feasible()
    counts = {rule.view.key: rule.table_counts for rule in rules.rules if rule.view is not None}
    everybody = Stats(np.array([learned.n], dtype=np.int64), tuple(counts[view.key][None, :] for view in rules.views))
    if rules.union_closed:
        require_one_class(rules, settings.algorithm, everybody)
    elif settings.intervals != "text" or settings.recode == "microaggregate":
        raise UnsupportedError(
            "Classes of different blocks can come to publish the same numbers, and this policy may not hold for them together; "
            'use intervals = "text" and recode = "generalize", or engine = "memory".'
        )
    elif settings.algorithm != "mondrian":
        raise UnsupportedError(
            "Good classes merged are not always good under this policy, so that blocks are safe with Mondrian's cuts alone; use "
            'algorithm = "mondrian".'
        )


def cut(
    engine: Engine, learned: Learned, solver: Solver, sample: pl.DataFrame, progress: Progress, room: int
) -> CutTree:
    """The blocks, each of which satisfies the policy; the counts of one walk may take so much `room`."""
    from shoal.kernels.mondrian import LOSS_OF_ALL, LOSS_OF_MEDIANS, MEDIANS

    options = solver.options if solver.algorithm == "mondrian" else {}
    split = LOSS_OF_ALL
    if options.get("split") == "median":
        split = MEDIANS
    elif options.get("cuts") == "median":
        split = LOSS_OF_MEDIANS
    place = {column.name: f"s{s}" for s, column in enumerate(learned.sensitive)}
    seen = tuple((place[view.key[0]], view.codes) for view in learned.rules.views)
    cutting = Cutting(
        learned.data.space(solver.objective),
        learned.rules,
        solver.largest,
        even=not solver.exact,
        split=split,
        categories=options.get("categories", "auto"),
        seen=seen,
        room=room,
        sample=Sample(*coded_arrays(sample, seen), max(1, learned.n // sample.height)),
    )
    codes = [np.flatnonzero(counts) for counts in learned.counts]
    low, high = np.array([own[0] for own in codes]), np.array([own[-1] for own in codes])
    tree = cutting.run(engine.weigh, Part(learned.n, low, high), progress)
    solver.require_blocks(tree)
    return tree


def _examined(engine: Engine, learned: Learned, rows: pl.DataFrame) -> Examination:
    """Whether the columns that are published as they are may be: asked before the search."""
    schema = learned.data.schema
    columns = {name: (one.frame[name], one.counts) for name, one in learned.published.items()}
    others = [name for name in schema.named("other") if schema.attributes[name].pseudonym is None]
    together = engine.repeats(others, missing=schema.missing).alone if others else 0
    decoded = [_decoded(rows[f"q{a}"], name, domain) for a, (name, domain) in enumerate(_domains(learned.data))]
    sample = pl.DataFrame([*decoded, *learned.shown(rows)])
    return examine_counted(columns, schema, learned.n, together, sample).require()


def _domains(data: Microdata) -> list[tuple[str, Domain]]:
    return list(zip(data.quasi, data.domains, strict=True))


def _decoded(codes: pl.Series, name: str, domain: Domain) -> pl.Series:
    """Codes as the values they stand for; missing is null."""
    if isinstance(domain, Interval):
        values = pl.Series([*domain.values.tolist(), None], dtype=pl.Float64)
    elif isinstance(domain, Set):
        values = pl.Series([*domain.labels, None], dtype=pl.String)
    else:
        values = pl.Series([*domain.taxonomy.labels[: domain.size - domain.has_missing], None], dtype=pl.String)
    return values.gather(codes.cast(pl.UInt32)).alias(name)
