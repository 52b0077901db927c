"""One table: the goal of each figure, and what the scripts measured last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

OUT = Path(__file__).parent / "out"

# Granularity on Adult with seven quasi-identifiers that a thorough search may lose at most, by policy.
LOSSES = {
    "k = 2": 0.00577,
    "k = 5": 0.0168,
    "k = 10": 0.0282,
    "k = 25": 0.0486,
    "k = 50": 0.0700,
    "k = 100": 0.0970,
    "k = 5, p = 3": 0.0181,
}
# … and in two minutes.
LONG = {"k = 2": 0.00575, "k = 5": 0.0166, "k = 10": 0.0279, "k = 25": 0.0480, "k = 50": 0.0692, "k = 100": 0.0958}
# How near the proven least a release of the same table has to be within 60 and 300 seconds of search and bound together.
RATIOS = {
    60: {"k = 2": 0.93, "k = 5": 0.92, "k = 10": 0.91, "k = 25": 0.89, "k = 50": 0.85, "k = 100": 0.84},
    300: {"k = 2": 0.935, "k = 5": 0.925, "k = 10": 0.92, "k = 25": 0.92, "k = 50": 0.88, "k = 100": 0.88},
}


# The same with the hierarchies that ARX was given, age among them: like for like.
LIKE_FOR_LIKE = {
    "k = 2": 0.0091,
    "k = 5": 0.0238,
    "k = 10": 0.0379,
    "k = 25": 0.0612,
    "k = 50": 0.0858,
    "k = 100": 0.1185,
}


class Row(NamedTuple):
    """A figure; `low` and `high` are what it must be at least and at most."""

    what: str
    value: float
    low: float | None = None
    high: float | None = None
    form: str = ",.2f"
    note: str = ""

    @property
    def goal(self) -> str:
        """The limit in words."""
        if self.low is not None:
            return f"at least {self.low:{self.form}}"
        return "reported" if self.high is None else f"at most {self.high:{self.form}}"

    @property
    def verdict(self) -> str:
        """Whether the figure keeps its limit."""
        if self.low is None and self.high is None:
            return ""
        good = (self.low is None or self.value >= self.low) and (self.high is None or self.value <= self.high)
        return "holds" if good else "**not met**"


def summary(page: str = "") -> str:
    """The table as Markdown; of scripts that never ran here the lines of the page as it is."""
    lines = ["| script | what | goal | measured | | |", "|---|---|---|---|---|---|"]
    for script, rows in ROWS.items():
        path = OUT / f"{script}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            lines += [
                f"| {script} | {row.what} | {row.goal} | {row.value:{row.form}} | {row.verdict} | {row.note} |"
                for row in rows(found)
            ]
        else:
            lines += [line for line in page.splitlines() if line.startswith(f"| {script} |")]
    return "\n".join(lines) + "\n"


def exactness(found: Any) -> Iterator[Row]:
    """Partitions that differ from the naive ones."""
    tables = sum(one["tables"] for one in found)
    differ = tables - sum(one["same"] for one in found)
    what = f"partitions that differ from the naive algorithm's, of {tables:,}"
    yield Row(what, differ, high=0, form=",.0f")


def mdav(found: Any) -> Iterator[Row]:
    """100,000 and 1,000,000 records."""
    last = found["against_naive"][-1]
    yield Row("MDAV 100,000 × 6: times faster than the compiled naive loop", last["ratio"], low=8, form=".1f")
    yield Row("MDAV 100,000 × 6: seconds", last["fast_seconds"], high=1.5)
    yield Row("MDAV 1,000,000 × 6: seconds", found["million"]["rows"][-1]["fast_seconds"], high=45)
    yield Row("MDAV: growth exponent from 50,000 to 800,000", found["growth"]["exponent"], high=1.4)


def clustering(found: Any) -> Iterator[Row]:
    """The slowest of each algorithm."""
    for name, what in (
        ("k_member", "k_member, Adult 30,162 × 8, slowest k: seconds"),
        ("enhanced_pk", "enhanced_pk, Truta et al. 2007's protocol, slowest p: seconds"),
        ("greedy_pk", "greedy_pk, Truta et al. 2007's protocol, slowest p: seconds"),
    ):
        yield Row(what, max(one["seconds"] for one in found if one["algorithm"] == name), high=1)


def blocks(found: Any) -> Iterator[Row]:
    """A million records, and what the seams cost."""
    runs = {(run["records"], run["block"]): run for run in found["runs"]}
    million = max(runs.values(), key=lambda run: run["records"])
    size = million["block"]
    yield Row("k_member 1,000,000 × 8 in blocks, all cores: seconds", million["seconds"], high=60)
    ratio = runs[100_000, size]["ncp"] / runs[100_000, 0]["ncp"]
    yield Row("its blocks on 100,000 records: loss over that of no blocks", ratio, high=1.03, form=".3f")


def end_to_end(found: Any) -> Iterator[Row]:
    """CSV to verified CSV."""
    yield Row(
        "Mondrian, 3,000,000 rows, CSV to verified CSV: seconds", found["wall"], high=6.5, note="ARX 8.9 (quoted)"
    )
    yield Row("the same: GB at most", found["gb"], high=1.2)
    if "ratio" in found:
        what = "the same: processor time over reading and writing with polars alone"
        yield Row(what, found["ratio"], form=".1f")


def verify(found: Any) -> Iterator[Row]:
    """What verification costs beside masking."""
    records = f"{found['records']:,}"
    what = f"shoal verify of {records} rows: processor time over that of shoal anonymize"
    yield Row(what, found["ratio"], high=0.6)
    yield Row("reading back what was written: share added to the whole road", found["added"], high=0.25, form=".0%")


def mondrian(found: Any) -> Iterator[Row]:
    """Growth and the largest table."""
    medians = [way for way in found["growth"] if way["way"] == "strict medians"]
    yield Row("Mondrian: growth exponent, one core", medians[0]["exponent"], high=1.15)
    largest = max((row for way in medians for row in way["rows"]), key=lambda row: row["records"])
    yield Row(f"Mondrian {largest['records']:,} records: GB at most", largest["gb"], high=16)
    yield Row(f"Mondrian {largest['records']:,} records, all cores: seconds", largest["seconds"])


def losses(found: Any) -> Iterator[Row]:
    """Adult with seven quasi-identifiers: like for like beside ARX, and with free intervals beside what is proven."""
    same = {row["policy"]: row for row in found.get("Adult, 7 quasi-identifiers, the same hierarchies", [])}
    for policy, most in LIKE_FOR_LIKE.items():
        if policy in same:
            row = same[policy]
            note = f"ARX {row['arx']:.4f} (quoted), proven least {row['bound']:.4f}"
            yield Row(f"same hierarchies as ARX, {policy}, thorough", row["thorough"], high=most, form=".4f", note=note)
    rows = {row["policy"]: row for row in found["Adult, 7 quasi-identifiers"]}
    for policy, most in LOSSES.items():
        row = rows[policy]
        note = f"proven least {row['bound']:.4f}"
        yield Row(f"free intervals, {policy}, thorough", row["thorough"], high=most, form=".5f", note=note)
    chosen = [row for policy, row in rows.items() if "p" not in policy]
    if same:
        worst = min(1 - row["fast"] / row["arx"] for policy, row in same.items() if "p" not in policy)
        yield Row("fast, same hierarchies: least share below ARX over these k", worst, form=".1%")
    yield Row("thorough: longest search, seconds", max(row["thorough_seconds"] for row in chosen), high=30)
    yield Row("fast: longest search, seconds", max(row["fast_seconds"] for row in chosen), high=3)


def long_losses(found: Any) -> Iterator[Row]:
    """The same table, searched for two minutes."""
    for row in found:
        what = f"free intervals, {row['policy']}, nominal 120 s"
        yield Row(
            what, row["loss"], high=LONG[row["policy"]], form=".5f", note=f"{row['seconds']:.0f} processor seconds"
        )


def pipeline(found: Any) -> Iterator[Row]:
    """Against the pipeline of Truta & Campan 2007."""
    for row in found:
        what = f"less IL than Truta & Campan 2007's pipeline, {row['records']:,} × {row['quasi']}, k = {row['k']}, thorough"
        yield Row(what, row["thorough"]["less"], low=0.25, form=".1%")


def persons(found: Any) -> Iterator[Row]:
    """People with several rows, and the examination of columns."""
    for values in ("few values", "many values"):
        for name in ("k_member", "box search"):
            what = (
                f"{name}, {values} ({found[values]['sets']:,} sets): time a person with several rows over one row each"
            )
            yield Row(what, found[values][name]["ratio"], high=1.5)
    share = found["examination"]["share"]
    yield Row("examination of columns, 1,000,000 rows: share of the road", share, high=0.10, form=".1%")


def suppression(found: Any) -> Iterator[Row]:
    """Local suppression, and why its goal cannot be reached."""
    note = f"proven: no fewer than {found['bound_cells']:,.0f} when a blank is a value"
    yield Row("local suppression, Adult × 7, k = 3: cells", found["thorough_cells"], high=5983, form=",.0f", note=note)


def budget(found: Any) -> Iterator[Row]:
    """Nominal and processor time, and wide tables."""
    rows = found["grid"] + [row for table in found["wide"] for row in table["searches"].values()]
    worst = max(row["beside"] for row in rows)
    yield Row(f"processor time over nominal time, worst of {len(rows)} searches", worst, high=1.5)
    for table in found["wide"]:
        what = f"{table['table']}: less than the best algorithm without a search"
        yield Row(f"{what}, fast", table["less"]["fast"], low=0.0, form=".1%")
        yield Row(f"{what}, thorough", table["less"]["thorough"], low=0.06, form=".1%")


def certificate(found: Any, seconds: int) -> Iterator[Row]:
    """The proven least over the loss, on Adult with seven quasi-identifiers."""
    rows = {row["policy"]: row for row in found if row["table"] == "Adult × 7"}
    for policy, least in RATIOS[seconds].items():
        if policy in rows:
            spent = rows[policy]["search_seconds"] + rows[policy]["bound_seconds"]
            what = f"proven least over loss, {policy}, nominal {seconds} s of search and bound"
            yield Row(what, rows[policy]["ratio"], low=least, form=".3f", note=f"{spent:.0f} processor seconds")


def never_worse(found: Any) -> Iterator[Row]:
    """Small random tables."""
    ended = found["ended"]
    what = (
        f"random tables, of {sum(ended.values()):,}, on which a search ends worse than it began, or breaks the policy"
    )
    yield Row(what, ended.get("worse", 0) + ended.get("broken", 0), high=0, form=",.0f")


def first_use(found: Any) -> Iterator[Row]:
    """Processor seconds; the demo by the clock."""
    yield Row("first use: compiling, seconds", found["compiling"][0])
    if "demo" in found:
        yield Row("shoal demo: seconds longer the first time", found["demo"][0] - found["demo"][1], high=8)
    yield Row("later uses: loading what was compiled, seconds", found["loading"][0], high=0.5)


def auto(found: Any) -> Iterator[Row]:
    """The worst choice."""
    for search, words in ((False, "no search after it"), (True, "a search after it")):
        ratios = [row["ratio"] for row in found if row["refined"] == search]
        if ratios:
            what = f"auto: loss over the least of all algorithms, {words}, {len(ratios)} pairs, worst case"
            yield Row(what, max(ratios), high=1.03, form=".3f")


def categories(found: Any) -> Iterator[Row]:
    """20,000 employers."""
    row = next(one for one in found if one["taxonomy"] == "none")
    yield Row("20,000 employers without a taxonomy, 30,000 records: seconds", row["seconds"], high=8)


def closeness(found: Any) -> Iterator[Row]:
    """t = 0.2."""
    line = next(line for line in found["lines"] if line["t"] == 0.2)
    note = "ARX 0.427, 6 % suppressed (quoted)"
    yield Row("granularity, k = 5 and t = 0.2", line["granularity"], high=0.209, form=".4f", note=note)
    seconds = line["seconds_peel"] + line["seconds_relocation"]
    yield Row("the same: seconds", seconds, high=40)


def measures(found: Any) -> Iterator[Row]:
    """All models, losses, risks and attacks."""
    for table in found["tables"]:
        what = f"all measures on {table['classes']:,} classes: seconds"
        yield Row(what, table["seconds"], high=table["asked_seconds"])


def evolve(found: Any) -> Iterator[Row]:
    """Changes against full runs."""
    what = "a change of 1 % of 100,000 records: times faster than a full run"
    yield Row(what, found["against_full_run"]["ratio"], low=50, form=".0f")
    last = found["growth"]["rows"][-1]
    what = f"inserts a second at {last['records']:,} records"
    yield Row(what, last["inserts_a_second"], low=2000, form=",.0f")
    yield Row("cost of an insert: growth exponent", found["growth"]["exponent"], high=0.5)
    alone = found["growth"]["alone"]
    yield Row(f"opening a store of {last['records']:,} and inserting one row: seconds", alone["open_seconds"], high=2.5)
    for number, line in enumerate(alone["releases"], start=1):
        what = f"its release {number}, over masking and verifying the same table once"
        yield Row(what, line["seconds"] / line["once_seconds"], high=1.5)
    yield Row("the same process: GB at most", alone["memory_gb"], high=1.5)


ROWS: dict[str, Callable[[Any], Iterator[Row]]] = {
    "exactness": exactness,
    "mdav": mdav,
    "clustering": clustering,
    "blocks": blocks,
    "end_to_end": end_to_end,
    "verify": verify,
    "mondrian": mondrian,
    "losses": losses,
    "losses-long": long_losses,
    "certificate": partial(certificate, seconds=60),
    "certificate-300": partial(certificate, seconds=300),
    "never_worse": never_worse,
    "pipeline": pipeline,
    "suppression": suppression,
    "budget": budget,
    "first_use": first_use,
    "auto": auto,
    "categories": categories,
    "closeness": closeness,
    "measures": measures,
    "evolve": evolve,
    "persons": persons,
}
