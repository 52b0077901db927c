"""What each guard costs over a year of weekly releases of a hospital's register, and what the audit finds.

    python -m benchmarks.releases

Every week patients are admitted and discharged, some of those who were discharged are admitted again, and some entries are
corrected; a release follows. The same weeks are published under every guard. Waiting rows and counterfeits are means a
release, the loss is ncp a record and quasi-identifier. Times are seconds of processor time.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.algorithms import run
from shoal.configuration import read_schema
from shoal.datasets import hospital
from shoal.datasets.hospital import taxonomy_path
from shoal.evolve.i3m.classes import Batch, Binding, Classes
from shoal.evolve.releases.guards import GUARDS, Guard, Plan, Table, plan_release
from shoal.evolve.releases.history import Audit, Cost, audit_members, costs, line
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.schema import Schema

SCHEMA = {
    "age": {"role": "quasi", "kind": "number", "domain": [0, 110]},
    "sex": {"role": "quasi", "kind": "category"},
    "zip": {"role": "quasi", "kind": "category", "taxonomy": {"prefix": [3, 2, 0]}},
    "admitted": {"role": "quasi", "kind": "date", "taxonomy": {"dates": ["month", "year"]}},
    "occupation": {"role": "quasi", "kind": "category", "taxonomy": str(taxonomy_path("occupation"))},
    "diagnosis": {"role": "sensitive", "kind": "category"},
}
OUT = Path(__file__).parent / "out"
POLICY = shoal.KAnonymity(5) & shoal.PSensitive(3, "diagnosis")


@dataclass(frozen=True)
class Weeks:
    """How much happens in a week."""

    start: int = 2_000
    weeks: int = 50
    admitted: int = 40
    discharged: int = 36
    moved: int = 4
    corrected: int = 4
    readmitted: int = 0
    """Of those admitted, patients who were discharged before."""


def year(size: Weeks, seed: int = 0, policy: Policy = POLICY) -> list[Table]:
    """The register after each week, with the classes that I3M keeps of it."""
    random = np.random.default_rng(seed)
    later = size.weeks - 1
    total = size.start + later * size.admitted
    frame = hospital(total, seed=seed).sort("admitted").select(list(SCHEMA))
    versions, changes = [frame], []
    present, away = np.arange(size.start), np.zeros(0, dtype=np.int64)
    next_new = size.start
    current = np.arange(total)
    rows = total
    for _ in range(later):
        gone = random.choice(present, size.discharged, replace=False)
        present = np.setdiff1d(present, gone)
        edited = random.choice(present, size.moved + size.corrected, replace=False)
        changed = pl.concat(versions)[current[edited]]
        donors = frame[random.integers(0, total, len(edited))]
        patient = pl.Series(np.arange(len(edited)) < size.moved)
        changed = changed.with_columns(
            zip=pl.when(patient).then(donors["zip"]).otherwise(pl.col("zip")),
            diagnosis=pl.when(patient).then(pl.col("diagnosis")).otherwise(donors["diagnosis"]),
        )
        versions.append(changed)
        current = current.copy()
        current[edited] = np.arange(rows, rows + len(edited))
        rows += len(edited)
        again = random.choice(away, min(size.readmitted, len(away)), replace=False)
        new = np.concatenate([again, np.arange(next_new, next_new + size.admitted - len(again))])
        next_new += size.admitted - len(again)
        away = np.union1d(np.setdiff1d(away, again), gone)
        present = np.union1d(present, new)
        changes.append((gone, edited, new, current))
    whole = pl.concat(versions)
    data = Microdata.from_frame(whole, SCHEMA)
    first = data.take(np.arange(size.start))
    binding = Binding(policy, data.sensitive)
    secrets = binding.codes()
    labels = run("mondrian", first, first.rules(policy)).labels
    classes = Classes(data.space("ncp"), first.codes, labels, binding, secrets[: size.start])
    tables = [Table(classes.records, whole[classes.records], classes.labels)]
    # Who is back is another record to I3M, and the same person to the releases.
    person, record = np.arange(size.start), {one: one for one in range(size.start)}
    for gone, edited, new, now in changes:
        coming = np.arange(len(person), len(person) + len(new))
        classes.apply(
            delete=sorted(record.pop(one) for one in gone.tolist()),
            update=Batch(data.codes[now[edited]], secrets[now[edited]], [record[one] for one in edited.tolist()]),
            insert=Batch(data.codes[now[new]], secrets[now[new]], coming.tolist()),
        )
        person = np.concatenate([person, new])
        record |= dict(zip(new.tolist(), coming.tolist(), strict=True))
        order = np.argsort(person[classes.records])
        here = person[classes.records][order]
        tables.append(Table(here, whole[now[here]], classes.labels[order]))
    return tables


def publish(tables: list[Table], guard: Guard, schema: Schema, policy: Policy = POLICY) -> list[Plan]:
    """A release a week."""
    plans: list[Plan] = []
    for table in tables:
        earlier = [plan.shown for plan in plans]
        before = earlier.pop() if earlier else None
        plans.append(plan_release(guard, table, before, schema, policy, earlier=earlier))
    return plans


def compare(size: Weeks, seed: int = 0) -> list[tuple[Cost, Audit, float, float]]:
    """Cost, audit, and times of releases and of the audit, for every guard."""
    schema, tables = read_schema(SCHEMA), year(size, seed)
    result = []
    for guard in GUARDS:
        publish(tables[:2], guard, schema)  # compiled code is not to be timed
        begin = time.process_time()
        plans = publish(tables, guard, schema)
        made = time.process_time()
        found = audit_members([plan.shown for plan in plans], schema, POLICY)
        done = time.process_time()
        cost = costs([line(guard, plan, schema) for plan in plans])[0]
        result.append((cost, found, made - begin, done - made))
    return result


def main() -> None:
    """Print the tables and write all figures."""
    lines = [*_year(Weeks()), *_year(Weeks(readmitted=4))]
    OUT.mkdir(exist_ok=True)
    (OUT / "releases.json").write_text(json.dumps(lines, indent=1), encoding="utf-8")


def _year(size: Weeks) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    print(
        f"{size.weeks} weekly releases of about {size.start:,} records, {POLICY}; a week: {size.admitted} admitted, "
        f"{size.discharged} discharged, {size.moved} moved, {size.corrected} diagnoses corrected, {size.readmitted} of those "
        "admitted were patients before"
    )
    for cost, found, made, audited in compare(size):
        told = {**cost.to_dict(), "findings": len(found.found), "undecided": found.undecided}
        told |= {"seconds": made, "audit_seconds": audited}
        if not lines:
            print(" | ".join(f"{name.replace('_waiting', ' wait'):>15}" for name in told))
        print(" | ".join(f"{v:>15.3f}" if isinstance(v, float) else f"{v:>15}" for v in told.values()), flush=True)
        lines.append({**told, "readmitted": size.readmitted, "facts": found.facts})
    return lines


if __name__ == "__main__":
    main()
