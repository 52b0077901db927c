"""Exactness: every accelerated algorithm against a naive one that shares no code with it, partition for partition.

The naive one looks at every record in each step, in plain NumPy (microaggregation gets the same points). Its own twin, written
from the definitions and slower still, agrees with both on 50 adversarial tables: ties, duplicates, constant columns, missing
values, all records equal, one column, two values, n < 2k, n = k. Then Adult (5,000 records, 8 quasi-identifiers, relationship
as sensitive attribute) and, for numbers, Census (1,080 records, 13 quasi-identifiers), k = 2, 5, 20 each. il_optimization
starts from k_member's classes; i3m inserts a fifth of the records and deletes some. Processor seconds on Adult, all three k
together, one core; the ratio is naive over ours. Writes benchmarks/out/exactness.json.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from benchmarks import _naive as naive
from tests.reference import i3m as i3m_twin
from tests.reference import mdav as mdav_twin
from tests.reference import micro as micro_twin
from tests.reference import pk as pk_twin
from tests.reference.k_member import Table, k_member
from tests.reference.models import About, tree_distance
from tests.reference.mondrian import mondrian
from tests.reference.spatial import spatial_distance as spatial_twin
from tests.tables import ILLNESSES, random_table

import shoal
from shoal.algorithms import run
from shoal.algorithms.features import feature_matrix
from shoal.datasets import census
from shoal.evolve.i3m.classes import Binding, Classes
from shoal.microdata import Microdata
from shoal.models import Model
from shoal.partition import Partition
from shoal.policy import Policy, Rules
from shoal.refine.il_optimization import il_optimization
from shoal.reproduce.tables import EIGHT, adult_sample
from shoal.space import Interval

OUT = Path(__file__).parent / "out"
SIZES = (2, 5, 20)
RARE, SPREAD = 0.2, 0.3
"""q and r of the (k, p, q, r) rule."""

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Task:
    """A table, the policy of one algorithm on it, and the distinct values it asks for."""

    data: Microdata
    k: int
    p: int
    rules: Rules

    @property
    def first(self) -> int:
        """The record that greedy algorithms start with."""
        return self.data.n // 3


@dataclass(frozen=True)
class Case:
    """An algorithm three times; `twin` is None where the naive one is the twin itself."""

    ours: Callable[[Task], Partition]
    naive: Callable[[Task], Groups | None]
    twin: Callable[[Task], Groups | None] | None = None
    models: Callable[[int], tuple[Model, ...]] = lambda p: ()
    prepare: Callable[[Microdata, int], object] = lambda data, k: None
    on_census: bool = True


def main() -> None:
    """One line an algorithm; the exit code says whether all partitions are the same."""
    hard = list(adversarial_tables())
    print(f"{'algorithm':22} {'tables':>6} {'same':>5} {'naive s':>9} {'ours s':>8} {'ratio':>7}")
    rows = []
    for name, case in CASES.items():
        begun = time.process_time()
        same = [agree(case, task(case, *table), with_twin=True)[0] for table in hard]
        naive_seconds = seconds = 0.0
        case.ours(task(case, adult_table().take(np.arange(100)), 2, 2))
        for k in SIZES:
            equal, naive_one, one = agree(case, task(case, adult_table(), k, diversity(k)))
            same.append(equal)
            naive_seconds, seconds = naive_seconds + naive_one, seconds + one
            if case.on_census:
                same.append(agree(case, task(case, census_table(), k, diversity(k)))[0])
        row = {"algorithm": name, "tables": len(same), "same": sum(same), "naive": naive_seconds, "ours": seconds}
        row |= {"ratio": naive_seconds / seconds, "all_seconds": time.process_time() - begun}
        print(
            f"{name:22} {row['tables']:6} {row['same']:5} {naive_seconds:9.2f} {seconds:8.3f} {row['ratio']:7,.0f}",
            flush=True,
        )
        rows.append(row)
    OUT.mkdir(exist_ok=True)
    (OUT / "exactness.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    different = [str(row["algorithm"]) for row in rows if row["same"] != row["tables"]]
    if different:
        sys.exit(f"Not the naive partition: {', '.join(different)}.")


def agree(case: Case, given: Task, with_twin: bool = False) -> tuple[bool, float, float]:
    """Whether all versions make the same classes; processor seconds of the naive one and of ours."""
    case.prepare(given.data, given.k)
    ours, seconds = timed(case.ours, given)
    expected, naive_seconds = timed(case.naive, given)
    found = sets(list(ours.members()))
    same = expected is not None and found == sets(expected)
    if same and with_twin and case.twin is not None:
        twin = case.twin(given)
        same = twin is not None and found == sets(twin)
    return same, naive_seconds, seconds


def timed(work: Callable[[Task], Any], given: Task) -> tuple[Any, float]:
    """The result and its processor seconds."""
    begun = time.process_time()
    result = work(given)
    return result, time.process_time() - begun


def sets(groups: Sequence[Any]) -> list[list[int]]:
    """A partition without the order of its classes and of their records."""
    return sorted(sorted(int(record) for record in group) for group in groups)


# ---- tables


def adversarial_tables() -> Iterator[tuple[Microdata, int, int]]:
    """Fifty tables, each with a k and a number of distinct sensitive values that can be had."""
    for seed in range(30):
        table = random_table(
            1000 + seed,
            (9, 17, 33, 52)[seed % 4],
            missing=(0.0, 0.1, 0.3)[seed % 3],
            duplicates=(0.0, 0.5, 0.9)[seed // 3 % 3],
        )
        yield possible(table, 2 + seed % 4, 2 + seed % 2)
    random = np.random.default_rng(5)
    for i in range(2):
        yield possible(small({"x": [7] * 23, "y": ["same"] * 23}, random), 3 + i, 2)
        yield possible(small({"x": random.integers(0, 6, 40).tolist()}, random), 3 + i, 2)
        yield possible(small({"colour": [f"c{v}" for v in random.integers(0, 5, 31)]}, random), 2 + i, 2)
        yield possible(small({"x": (random.random(37) < 0.5).tolist(), "one": [1] * 37}, random), 2 + 3 * i, 2)
        yield possible(small({name: random.integers(0, 2, 29).tolist() for name in "abcd"}, random), 4, 3)
        yield possible(small({"x": [*range(25)], "y": [*range(25, 0, -1)]}, random), 2 + i, 2)
        yield possible(small({"x": [i // 5 for i in range(25)], "y": [i % 5 for i in range(25)]}, random), 3, 2 + i)
        yield possible(small({"x": [0] * 27 + [1, 50, 10**6], "c": ["a"] * 29 + ["b"]}, random), 2 + i, 2)
        yield possible(random_table(2000 + i, 13), 7, 2)
        yield possible(random_table(2010 + i, 6 + i), 6 + i, 2)


def small(columns: dict[str, list[Any]], random: np.random.Generator) -> Microdata:
    """Quasi-identifiers as given, with four illnesses of skewed frequency."""
    n = len(next(iter(columns.values())))
    columns = {name: list(map(str, v)) if isinstance(v[0], bool) else v for name, v in columns.items()}
    illness = random.choice(["flu", "asthma", "ulcer", "HIV"], n, p=[0.5, 0.25, 0.15, 0.1]).tolist()
    schema = {name: {"role": "quasi"} for name in columns} | {"illness": {"role": "sensitive", "kind": "category"}}
    return Microdata.from_frame(pl.DataFrame(columns | {"illness": illness}), schema)


def possible(data: Microdata, k: int, p: int) -> tuple[Microdata, int, int]:
    """A p that the table has values for."""
    return data, k, min(p, len(np.unique(data.sensitive[0].codes[data.sensitive[0].codes >= 0])))


@cache
def adult_table() -> Microdata:
    """5,000 records, 8 quasi-identifiers."""
    return adult_sample(5_000, EIGHT, ("relationship",))


@cache
def census_table() -> Microdata:
    """All attributes, and a made-up category."""
    table = census()
    schema: dict[str, Any] = {name: {"role": "quasi"} for name in table.columns}
    schema["illness"] = {"role": "sensitive", "kind": "category"}
    odds = 1 / np.arange(1, 9)
    illness = np.random.default_rng(3).choice([f"v{i}" for i in range(8)], table.height, p=odds / odds.sum())
    return Microdata.from_frame(table.with_columns(illness=pl.Series(illness)), schema)


def diversity(k: int) -> int:
    """Distinct values asked for on the large tables."""
    return {2: 2, 5: 3, 20: 4}[k]


def task(case: Case, data: Microdata, k: int, p: int) -> Task:
    """The policy that the algorithm is for."""
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a sensitive attribute without variance is announced, and nothing is asked of it
        return Task(data, k, p, data.rules(Policy((shoal.KAnonymity(k), *case.models(p)))))


# ---- each algorithm, naive and as its twin


@cache
def table_of(data: Microdata, kind: type[Table], measure: str = "ncp") -> Table:
    """Loss tables are the same for every k."""
    return kind(data, measure)


def secrets_of(given: Task, kind: type[pk_twin.Secrets]) -> pk_twin.Secrets:
    return kind([column.codes.tolist() for column in given.data.sensitive], [given.p] * len(given.data.sensitive))


def by_scans(work: Callable[[Task], Groups]) -> Callable[[Task], Groups]:
    """The twin's steps with these scans instead of its own."""

    def scanned(given: Task) -> Groups:
        from unittest.mock import patch

        with patch.multiple(pk_twin, best_match=naive.best_match, sweep=naive.sweep, disperse=naive.disperse):
            return work(given)

    return scanned


def greedy(given: Task, table: type[Table], secrets: type[pk_twin.Secrets]) -> Groups:
    return pk_twin.greedy_pk(table_of(given.data, table), secrets_of(given, secrets), given.k, given.first)


def enhanced(given: Task, table: type[Table], secrets: type[pk_twin.Secrets]) -> Groups:
    return pk_twin.enhanced_pk(table_of(given.data, table), secrets_of(given, secrets), given.k)


def mdav_by_twin(given: Task, form: str) -> Groups:
    labels = (mdav_twin.mdav if form == "generic" else mdav_twin.mdav_single)(feature_matrix(given.data), given.k)
    return [np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1)]


def p_mdav_groups(given: Task, plain: bool) -> Groups | None:
    X, codes = feature_matrix(given.data), given.data.sensitive[0].codes.astype(np.int64)
    values = labels_of(given.data)

    def lacks(group: Sequence[int]) -> float:
        return max(0, given.k - len(group)) + max(0, given.p - micro_twin.distinct(values, group))

    k = max(given.k, given.p)
    if plain:
        found = micro_twin.p_mdav(X, k, [(values, given.p)], lacks, list(range(len(X))))
    else:
        found = naive.p_mdav(X, k, codes, given.p)
    return micro_twin.finish(X, found, lacks, True, None)


def kpqr_groups(given: Task, plain: bool) -> Groups | None:
    data, k = given.data, given.rules.k
    X, codes = feature_matrix(data), data.sensitive[0].codes.astype(np.int64)
    about = About(parent={child: above for row in ILLNESSES for child, above in pairwise(row)})
    nominal = data.schema.attributes[data.sensitive[0].name].taxonomy is None

    def squared(one: str, other: str) -> float:
        return float(one != other) if nominal else tree_distance(about, one, other) ** 2

    rule = micro_twin.Attribute(labels_of(data), squared, given.p, RARE, SPREAD)

    def lacks(group: Sequence[int]) -> float:
        return max(0, k - len(group)) + rule.lacks(group)

    def shown(group: Sequence[int]) -> Any:
        return tuple(i3m_twin.generalization(data, table_of(data, naive.Scans), group))

    if plain:
        order = [i for i in range(data.n) if rule.obliges([i])]
        found = micro_twin.kpqr(X, k, [rule], lacks, order)
    else:
        found = naive.kpqr(X, k, rule, codes)
    return micro_twin.finish(X, found, lacks, False, shown)


def labels_of(data: Microdata) -> list[str | None]:
    column = data.sensitive[0]
    return [None if code < 0 else column.labels[code] for code in column.codes]


def by_contexts(given: Task) -> Groups:
    numbers = {a: np.array(column, dtype=np.float64) for a, column in scaled(given.data).items()}
    return naive.spatial_distance(given.data.codes.astype(np.int64), numbers, given.k)


def scaled(data: Microdata) -> dict[int, list[float | None]]:
    """Numbers over the range that occurs, by column; ordered labels are categories here."""
    found: dict[int, list[float | None]] = {}
    for a, domain in enumerate(data.domains):
        if isinstance(domain, Interval) and domain.labels is None:
            spread = float(domain.values[-1] - domain.values[0])
            values = domain.values / spread if spread else np.zeros(len(domain.values))
            found[a] = [None if code == domain.missing_code else float(values[code]) for code in data.codes[:, a]]
    return found


@cache
def first_classes(data: Microdata, k: int) -> Partition:
    """What IL_Optimization starts from."""
    rules = data.rules(Policy((shoal.KAnonymity(k),)))
    return run("k_member", data, rules, objective="il", options={"first": 0})


# ---- what is compared


def by_name(name: str, started: bool = False, **options: Any) -> Callable[[Task], Partition]:
    def work(given: Task) -> Partition:
        more = {"first": given.first} if started else {}
        return run(name, given.data, given.rules, options=options | more)

    return work


def ours_broken(given: Task) -> Partition:
    start = first_classes(given.data, given.k)
    return il_optimization(given.data.codes, given.data.space("il"), given.rules, start)


def naively_broken(given: Task) -> Groups:
    start = [members.tolist() for members in first_classes(given.data, given.k).members()]
    return naive.il_optimization(given.data, table_of(given.data, naive.Scans, "il"), start)


def twin_broken(given: Task) -> Groups:
    start = [members.tolist() for members in first_classes(given.data, given.k).members()]
    return i3m_twin.il_optimization(given.data, table_of(given.data, Table, "il"), start)


@cache
def changes(data: Microdata, k: int) -> tuple[list[list[int]], list[int], list[int]]:
    """Classes of the first four fifths of the records; those that come later; those that go after that."""
    n = data.n
    before = max(k, 4 * n // 5)
    start = first_classes(data.take(np.arange(before)), k)
    going = list(range(0, n, max(5, n // 40)))
    return [c.tolist() for c in start.members()], list(range(before, n)), going if n - len(going) >= 2 * k else []


def ours_changed(given: Task) -> Partition:
    start, coming, going = changes(given.data, given.k)
    data, before = given.data, given.data.n - len(coming)
    labels = Partition.of_classes(start, before).labels.astype(np.int64)
    classes = Classes(data.space("il"), data.codes[:before], labels, Binding(Policy((shoal.KAnonymity(given.k),))))
    classes.insert(data.codes[before:])
    classes.delete(going)
    found = np.full(data.n, -1, dtype=np.int64)
    found[classes.records] = classes.labels
    return Partition.compact(found)


def changed(given: Task, kind: type[i3m_twin.Classes], table: type[Table]) -> Groups:
    start, coming, going = changes(given.data, given.k)
    labels = {record: c for c, members in enumerate(start) for record in members}
    classes = kind(table_of(given.data, table, "il"), labels, given.k)
    classes.insert(coming)
    classes.delete(going)
    return list(classes.classes.values())


def twin_cut(given: Task, **options: Any) -> Groups:
    return mondrian(given.data, lambda part: len(part) >= given.k, **options)


def sensitive(p: int) -> tuple[Model, ...]:
    return (shoal.PSensitive(p),)


def rare(p: int) -> tuple[Model, ...]:
    return (shoal.KPQR(p, RARE, SPREAD),)


CASES = {
    "k_member": Case(
        by_name("k_member", started=True),
        lambda t: k_member(table_of(t.data, naive.Scans), t.k, t.first),
        lambda t: k_member(table_of(t.data, Table), t.k, t.first),
    ),
    "greedy_pk": Case(
        by_name("greedy_pk", started=True),
        by_scans(partial(greedy, table=naive.Scans, secrets=naive.SecretScans)),
        partial(greedy, table=Table, secrets=pk_twin.Secrets),
        sensitive,
        on_census=False,
    ),
    "enhanced_pk": Case(
        by_name("enhanced_pk"),
        by_scans(partial(enhanced, table=naive.Scans, secrets=naive.SecretScans)),
        partial(enhanced, table=Table, secrets=pk_twin.Secrets),
        sensitive,
        on_census=False,
    ),
    "mdav": Case(
        by_name("mdav"),
        lambda t: naive.mdav(feature_matrix(t.data), t.k, "generic"),
        partial(mdav_by_twin, form="generic"),
    ),
    "mdav, single": Case(
        by_name("mdav", form="single"),
        lambda t: naive.mdav(feature_matrix(t.data), t.k, "single"),
        partial(mdav_by_twin, form="single"),
    ),
    "p_mdav": Case(
        by_name("p_mdav", init="order"),
        partial(p_mdav_groups, plain=False),
        partial(p_mdav_groups, plain=True),
        sensitive,
    ),
    "kpqr": Case(
        by_name("kpqr", init="order"), partial(kpqr_groups, plain=False), partial(kpqr_groups, plain=True), rare
    ),
    "spatial_distance": Case(
        by_name("spatial_distance"),
        by_contexts,
        lambda t: spatial_twin(t.data.codes.tolist(), scaled(t.data), t.k),
        on_census=False,
    ),
    "mondrian, medians": Case(by_name("mondrian", split="median"), partial(twin_cut, split="median")),
    "mondrian, loss": Case(by_name("mondrian"), partial(twin_cut, split="loss", cuts="all"), on_census=False),
    "il_optimization": Case(ours_broken, naively_broken, twin_broken, prepare=first_classes, on_census=False),
    "i3m": Case(
        ours_changed,
        partial(changed, kind=naive.Stepwise, table=naive.Scans),
        partial(changed, kind=i3m_twin.Classes, table=Table),
        prepare=changes,
        on_census=False,
    ),
}


if __name__ == "__main__":
    main()
