"""Strategies: taxonomies, tables, policies, settings of a release, and whole attempts at one.

Each is written once, over dice. Hypothesis throws them where a failure should be made small (`drawn`: `drawn(a_table)` is a
strategy); `tools/fuzz.py` throws them evenly, by a seed, where many cases should differ. What a case looks like is thrown (how many
records, which columns, how many values, how many holes); the cells come from one seed, so that a table of fifty records costs a
dozen throws and not three hundred.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, TypeVar, get_args, get_origin

import numpy as np
import polars as pl
from hypothesis import strategies as st
from tests.reference.models import About

from shoal.algorithms import names
from shoal.algorithms.options import options_of
from shoal.models import MODELS
from shoal.policy import Policy

JOBS = ["clerk", "nurse", "judge", "farmer", "waiter", "midwife", "pilot", "baker"]
# Labels that look like something else: a set, an interval, a star, missing, a number, a formula.
ODD = ["[1, 2]", "{a, b}", "a, b", "*x", 'say "a"', "∅", "*", "1", "-5", "=1+1", "a;b", "tab\tbed", "line\nbreak", "Ash, Birch & Co"]  # fmt: skip
# The same and nearly the same: refused among quasi-identifiers, counted as one among secrets.
MESSY = ["flu", "Flu", "flu ", "NA", "cold", "COLD", "ulcer", "?"]
NAMES_OF_LEVELS = ["low", "middle", "high", "highest"]
FORMATS = ["csv", "tsv", "parquet", "arrow", "jsonl", "xlsx", "csv.gz"]

T = TypeVar("T")


class Dice(Protocol):
    """Where chance comes from."""

    def pick(self, values: Sequence[T]) -> T: ...
    def whole(self, low: int, high: int) -> int: ...


class Thrown:
    """Dice of a seed: evenly, and without a memory."""

    def __init__(self, seed: str | int) -> None:
        self.random = random.Random(seed)

    def pick(self, values: Sequence[T]) -> T:
        return self.random.choice(values)

    def whole(self, low: int, high: int) -> int:
        return self.random.randint(low, high)


@dataclass
class _Drawn:
    """Dice of hypothesis, which makes failures small."""

    draw: st.DrawFn

    def pick(self, values: Sequence[T]) -> T:
        return self.draw(st.sampled_from(values))

    def whole(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


def drawn(make: Callable[..., T], **settings: Any) -> st.SearchStrategy[T]:
    """The hypothesis strategy of something that is made with dice."""
    return st.composite(lambda draw: make(_Drawn(draw), **settings))()


def flag(dice: Dice) -> bool:
    return dice.pick([False, True])


def some(dice: Dice, values: Sequence[T], most: int, least: int = 0) -> list[T]:
    """A few of the values, each at most once."""
    left, found = list(values), []
    for _ in range(dice.whole(least, min(most, len(left)))):
        found.append(left.pop(dice.whole(0, len(left) - 1)))
    return found


def a_taxonomy(dice: Dice, leaves: int = 6, prefix: str = "v") -> list[list[str]]:
    """Ragged paths from leaf to root; an inner label is the path above it, so that no two nodes share one."""
    paths = [[dice.pick("abc") for _ in range(dice.whole(0, 3))] for _ in range(dice.whole(2, max(2, leaves)))]
    return [[f"{prefix}{i}", *("".join(path[j:]) for j in range(len(path))), "*"] for i, path in enumerate(paths)]


@dataclass
class Table:
    """A table, who its columns are, and what the twins have to know about its secrets."""

    frame: pl.DataFrame
    schema: dict[str, Any]
    abouts: dict[str, About]
    folded: set[str] = field(default_factory=set)
    """Secrets that are counted without regard to case and spaces around them."""
    person: str | None = None

    @property
    def secrets(self) -> list[str]:
        return list(self.abouts)


def _skewed(rng: np.random.Generator, values: int, n: int) -> np.ndarray:
    return rng.choice(values, n, p=rng.dirichlet(np.full(values, rng.choice([0.4, 2.0]))))


def a_quasi_identifier(
    dice: Dice, rng: np.random.Generator, n: int, person: bool
) -> tuple[list[Any], dict[str, Any], Any]:
    """Values, declaration and polars type of one quasi-identifier."""
    kind = dice.pick(
        ["number", "number", "real", "set", "set", "odd", "tree", "zip", "ordered", "date", "widths", "auto", "flag"]
    )
    values = dice.pick([1, 2, 3, 6, 12, 40])
    codes, dtype, more = _skewed(rng, values, n), None, {}
    if kind in ("number", "widths"):
        step, base = dice.pick([1, 3, 1000]), dice.pick([0, 17, -20])
        cells = (base + step * codes).tolist()
        if kind == "widths":
            more = {"taxonomy": {"intervals": [5, 20]} if flag(dice) else "auto"}
        elif flag(dice):
            more = {"domain": [-100, 100_000]}
    elif kind == "real":
        cells = (codes / dice.pick([8, 10, 3]) - 1).tolist()
    elif kind == "set":
        cells = [JOBS[code % len(JOBS)] for code in codes]
    elif kind == "odd":
        pool = some(dice, ODD + JOBS[:3] + MESSY[:3], 6, least=2)
        cells, more = [pool[code % len(pool)] for code in codes], {"kind": "category"}
    elif kind == "tree":
        rows = a_taxonomy(dice, 8)
        cells, more = [rows[code % len(rows)][0] for code in codes], {"taxonomy": {"rows": rows}}
    elif kind == "zip":
        cells, more = (
            [f"41{code * 7 % 100:02d}" for code in codes],
            {"taxonomy": {"prefix": dice.pick([[2, 0], [3, 2, 1], [3]])}},
        )
    elif kind == "ordered":
        cells, more = [NAMES_OF_LEVELS[code % 4] for code in codes], {"order": NAMES_OF_LEVELS}
    elif kind == "date":
        cells, dtype = [datetime.date(2020, 1, 28) + datetime.timedelta(days=int(code) * 17) for code in codes], pl.Date
        more = {"taxonomy": {"dates": ["month", "year"]}} if flag(dice) else {}
    elif kind == "flag":
        cells = (codes % 2 == 0).tolist()
    else:
        cells, more = [JOBS[code % len(JOBS)] for code in codes], {"taxonomy": "auto"}
    if dice.whole(0, 3) == 0:
        more["weight"] = dice.pick([0.0, 0.5, 3.0])
    if person:
        more["within"] = dice.pick(["first", "last", "most"])
    return cells, {"role": "quasi", **more}, dtype


def a_secret(dice: Dice, rng: np.random.Generator, n: int) -> tuple[list[Any], dict[str, Any], About, bool]:
    """Values, declaration, what the twins know, and whether spellings are joined."""
    kind = dice.pick(["tree", "tree", "number", "number", "ordered", "plain", "messy"])
    values = dice.pick([2, 3, 5, 8])
    codes = _skewed(rng, values, n)
    if kind == "number":
        step = dice.pick([1, 10, 0.5])
        cells = (codes * step).tolist()
        ranked = sorted(set(cells))
        about = About({repr(float(v)): float(v) for v in ranked}, {repr(float(v)): i for i, v in enumerate(ranked)})
        return cells, {"role": "sensitive", "kind": "number"}, about, False
    if kind == "ordered":
        cells = [NAMES_OF_LEVELS[code % 4] for code in codes]
        ranked = {label: i for i, label in enumerate(NAMES_OF_LEVELS)}
        return cells, {"role": "sensitive", "order": NAMES_OF_LEVELS}, About(rank=ranked), False
    if kind in ("plain", "messy"):
        pool = JOBS if kind == "plain" else MESSY
        return [pool[code % len(pool)] for code in codes], {"role": "sensitive"}, About(), True
    rows = a_taxonomy(dice, values, "s")
    leaves = [row[0] for row in rows]
    inner = sorted({label for row in rows for label in row[1:-1]})
    third = max(1, len(leaves) // 3)
    groups = [leaves[:third], leaves[third : 2 * third], leaves[2 * third :]]
    categories = {f"g{i}": group for i, group in enumerate(groups) if group}
    protect = some(dice, inner, 2)
    schema = {"role": "sensitive", "taxonomy": {"rows": rows}, "protect": protect, "categories": categories}
    about = About(
        parent={low: high for row in rows for low, high in pairwise(row)},
        protect=tuple(protect),
        categories=tuple((name, tuple(group)) for name, group in categories.items()),
    )
    return [leaves[code % len(leaves)] for code in codes], schema, about, False


def a_table(dice: Dice, *, largest: int = 60, persons: bool | None = None) -> Table:
    """A table about people: one to four quasi-identifiers of any kind, up to two secrets, others, holes and repeated records."""
    rng = np.random.default_rng(dice.whole(0, 2**32 - 1))
    n = dice.whole(3, largest)
    person = dice.whole(0, 5) == 0 if persons is None else persons
    columns: dict[str, list[Any]] = {"name": [f"Canary-{i:04d}-{rng.integers(1 << 30)}" for i in range(n)]}
    schema: dict[str, Any] = {"name": {"role": "identifier"}}
    dtypes: dict[str, Any] = {}
    holes = dice.pick([0.0, 0.0, 0.1, 0.4])
    for i in range(dice.whole(1, 4)):
        columns[f"q{i}"], schema[f"q{i}"], dtypes[f"q{i}"] = a_quasi_identifier(dice, rng, n, person)
    quasi = list(schema)[1:]
    for i in np.flatnonzero(rng.random(n) < dice.pick([0.0, 0.3, 0.9])):
        source = int(rng.integers(0, n))
        for name in quasi:
            columns[name][i] = columns[name][source]
    abouts, folded = {}, set()
    for i in range(dice.whole(0, 2)):
        columns[f"s{i}"], schema[f"s{i}"], abouts[f"s{i}"], fold = a_secret(dice, rng, n)
        folded |= {f"s{i}"} if fold else set()
    for name in [*quasi, *abouts]:
        _punch(columns[name], rng, holes)
    if flag(dice):
        columns["ward"] = [f"ward {i}" for i in _skewed(rng, 3, n)]
        schema["ward"] = {"role": "other", "accept": "made up"}
    if person:
        owners = rng.integers(0, max(2, n // 2), n)
        columns["pid"] = [f"P{i}" for i in owners]
        token = flag(dice)
        schema["pid"] = {"role": "person", **({"publish": "token"} if token else {})}
    frame = pl.DataFrame(
        [pl.Series(name, cells, dtype=dtypes.get(name), strict=False) for name, cells in columns.items()]
    )
    return Table(frame, schema, abouts, folded, "pid" if person else None)


def _punch(column: list[Any], rng: np.random.Generator, share: float) -> None:
    for i in np.flatnonzero(rng.random(len(column)) < share):
        if i > 0:  # a column of nothing but holes is refused
            column[i] = None


def a_model(dice: Dice, table: Table) -> Any:
    """One model with parameters of its own choice, on one of the table's secrets that it can be asked of."""
    if not table.secrets or dice.whole(0, 3) == 0:
        return MODELS["k_anonymity"](dice.whole(1, 6))
    attribute = dice.pick(table.secrets)
    about = table.abouts[attribute]
    p = dice.whole(1, 3)
    share = dice.pick([0.2, 0.34, 0.5, 0.75, 1.0])
    fitting = ["p_sensitive", "l_diversity", "alpha_k", "t_closeness", "delta_disclosure", "beta_likeness"]
    fitting += ["k_e"] * bool(about.number) + ["kpqr"] * (bool(about.number) or table.person is None)
    fitting += ["extended_p_sensitive", "p_plus_sensitive", "p_alpha_sensitive", "personalized"] * bool(
        about.categories
    )
    name = dice.pick(fitting)
    leaves = [value for _, group in about.categories for value in group]
    parameters: dict[str, Any] = {
        "p_sensitive": {"p": p},
        "extended_p_sensitive": {"p": p},
        "p_plus_sensitive": {"p": p},
        "p_alpha_sensitive": {"p": p, "alpha": dice.pick([0.5, 1.0, 2.0]), "scope": dice.pick(["rows", "distinct"])},
        "l_diversity": dice.pick([{"l": p}, {"l": 1 + p / 2, "variant": "entropy"}, {"l": p, "variant": "recursive", "c": 1.0 + p}]),
        "alpha_k": {"alpha": share},
        "t_closeness": {"t": share, **dice.pick([{}, {"distance": "equal"}, *[{"distance": "ordered"}] * bool(about.rank)])},
        "delta_disclosure": {"delta": 2 * share, "absent": dice.pick(["allowed", "allowed", "refused"])},
        "beta_likeness": {"beta": 2 * share, "variant": dice.pick(["basic", "enhanced"])},
        "k_e": {"e": dice.pick([0.5, 1.0, 10.0]), **dice.pick([{}, {"k": 2}, {"k": 2, "count": "distinct"}])},
        "kpqr": {"p": p, "q": share, "r": dice.pick([0.1, 0.5, 0.9]), "reference": dice.pick(["all", "rare"]),
                 "scope": dice.pick(["required", "literal"])},
        "personalized": {"breach": share, "guard": dice.pick([0, 1, {leaves[0]: leaves[0]}] if leaves else [0, 1])},
    }[name]  # fmt: skip
    return MODELS[name](**parameters, attribute=attribute)


def a_policy(dice: Dice, table: Table) -> Policy:
    """One to three models together."""
    return Policy(tuple(a_model(dice, table) for _ in range(dice.whole(1, 3))))


def some_options(dice: Dice, algorithm: str) -> dict[str, Any]:
    """Options of an algorithm: some of those that are words, switches or blocks."""
    chosen: dict[str, Any] = {}
    for name, kind in options_of(algorithm).items():
        if name in ("threads", "refined", "preparation") or dice.whole(0, 3):
            continue
        words = [
            word
            for part in (kind, *get_args(kind))
            if get_origin(part) is not None
            for word in get_args(part)
            if isinstance(word, str)
        ]
        if words:
            chosen[name] = dice.pick(words)
        elif kind is bool:
            chosen[name] = flag(dice)
    return chosen


def some_settings(dice: Dice, *, algorithm: str | None = None) -> dict[str, Any]:
    """What `anonymize` takes besides table and policy."""
    algorithm = algorithm or dice.pick(names())
    return {
        "algorithm": algorithm,
        "objective": dice.pick(["ncp", "il", "granularity"]),
        "refine": dice.pick([False, False, "fast", 0.01]),
        "suppress": dice.pick([None, None, 0.0, 0.1, 0.3, 1.0]),
        "seed": dice.whole(0, 99),
        "recode": dice.pick(["generalize", "generalize", "generalize", "microaggregate", "suppress"]),
        "intervals": dice.pick(["text", "text", "columns", "midpoint"]),
        "order": dice.pick(["shuffle", "keep"]),
        "suppressed": dice.pick(["mask", "drop"]),
        **some_options(dice, algorithm),
    }


@dataclass
class Attempt:
    """All that a release is made from, and the file it is written to."""

    table: Table
    policy: Policy
    settings: dict[str, Any]
    file: str
    safe_csv: bool

    def __str__(self) -> str:
        with pl.Config(tbl_rows=100, tbl_cols=20, fmt_str_lengths=60):
            return f"{self.policy}\n{self.settings}\n{self.table.schema}\n{self.file}, safe_csv={self.safe_csv}\n{self.table.frame}"


def an_attempt(dice: Dice, *, algorithm: str | None = None, largest: int = 60) -> Attempt:
    """A table, a policy, settings and a format."""
    table = a_table(dice, largest=largest)
    policy = a_policy(dice, table)
    settings = some_settings(dice, algorithm=algorithm)
    if table.person is not None and "publish" not in table.schema["pid"]:
        # Without a token only the order of the rows says whose each is; the checker has nothing else to go by.
        settings |= {"order": "keep", "suppressed": "mask"}
    return Attempt(table, policy, settings, "masked." + dice.pick(FORMATS), flag(dice))
