"""What a machine makes of the same tables: `python -m tests.machine FOLDER THREADS PART …` prints it as JSON, a line a part.

Floats are printed to their last digit, tables and labels as digests of their bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tests.measures.masking import masked_of
from tests.tables import random_table

import shoal
from shoal.datasets import survey, survey_schema
from shoal.microdata import Microdata

Told = Iterator[tuple[str, Any]]


def demo(folder: Path) -> Told:
    """Everything `shoal demo` leaves behind; the manifest in full."""
    from shoal.cli.demo import demo as run

    run(folder, records=600, seed=7, as_json=False, quiet=True)
    for path in sorted(folder.iterdir()):
        yield path.name, json.loads(path.read_text()) if path.suffix == ".json" else digest(path.read_bytes())


def three_layer(folder: Path) -> Told:
    """The clusters of x-means, and the classes that are made of them."""
    from shoal.algorithms import run
    from shoal.algorithms.three_layer import prepare

    for number, data in enumerate((plain_table(), random_table(4, 250))):
        rules = data.rules(shoal.KAnonymity(4) & shoal.PSensitive(2, "illness"))
        weightings = ("chi_squared", "cramers_v", "information_gain", "uniform")
        for weighting, scaling in (*((one, "range") for one in weightings), ("uniform", "spread")):
            ready = prepare(data, k=4, seed=number, weighting=weighting, scaling=scaling)  # type: ignore[arg-type]
            found = [run("three_layer", data, rules, options={"preparation": ready, "merging": merging}).labels for merging in ("nearest", "loss")]  # fmt: skip
            yield f"{number} {weighting} {scaling}", [digest(part) for part in (ready.weights, ready.cluster, *found)]


def measures(folder: Path) -> Told:
    """Every loss, risk, attack and utility of one masked table."""
    from shoal.measures import attacks, loss, masked, minimality, releases, risk, utility
    from shoal.measures.seen import MaskedTable

    for number, data in enumerate((random_table(5, 300, sensitive=2), plain_table())):
        partition, other = classes_of(data, 7), classes_of(data, 9)
        table, again = masked_of(data, partition)[0], masked_of(data, other)[0]
        named = f"{number} "
        yield named + "loss", loss.measure(data, partition, 3).to_dict()
        yield named + "classes", digest(loss.per_class(data, partition).frame().write_csv().encode())
        yield named + "masked", masked.measure_masked(data, table, 3).to_dict()
        seen = MaskedTable.of(table, data.schema)
        yield (
            named + "risk",
            risk.reidentification_risk(seen.sizes, seen.sizes * 3 + np.arange(len(seen.sizes))).to_dict(),
        )
        for exposure in attacks.run_attacks(seen):
            yield f"{named}{exposure.attack} {exposure.attribute}", exposure.to_dict()
        yield named + "linking", attacks.linking(seen, data.frame).exposure.to_dict()
        yield named + "minimality", minimality.minimality_attack(seen, data.frame, 0.5).to_dict()
        for exposure in releases.attack_releases([table, again], data.schema, 3, data.frame):
            yield f"{named}two releases {exposure.attack} {exposure.attribute}", exposure.to_dict()
        yield named + "queries", utility.query_error(data, table, queries=150, seed=1).to_dict()
        yield named + "audit", [asdict(row) for row in shoal.audit(table, data.schema)] if number == 0 else None
        yield named + "separating", [asdict(item) for item in risk.separating_sets(data.frame, data.quasi, 2)]
    numbers = masked_of(plain_table(), classes_of(plain_table(), 7), recode="microaggregate")[0]
    yield "averages", masked.measure_masked(plain_table(), numbers, 3, averages=True).to_dict()
    yield "classification", utility.classification(data, table, "illness").to_dict()
    sizes = np.sort(np.minimum(np.random.default_rng(2).geometric(0.45, 400), 9))
    for fraction in (0.02, 0.1, 0.25, 0.7, 1.0):
        yield f"uniqueness {fraction}", risk.dankar(sizes, fraction).to_dict()


def bound(folder: Path) -> Told:
    """The lower bound on the loss, and its certificate."""
    from shoal.measures.bounds import loss_bound

    data = random_table(6, 150)
    rules = data.rules(shoal.KAnonymity(3) & shoal.PSensitive(2, "illness"))
    for effort in ("quick", "fast"):
        found = loss_bound(data.codes, data.space("ncp"), rules, effort=effort)  # type: ignore[arg-type]
        yield effort, [found.total, found.mean, digest(found.u)]
    wide = Microdata.from_frame(survey(300, 20), survey_schema(20))
    found = loss_bound(wide.codes, wide.space("ncp"), wide.rules(shoal.Policy((shoal.KAnonymity(4),))))
    yield "wide", [found.total, found.parts[0].by, digest(found.u)]


def algorithms(folder: Path) -> Told:
    """The release of every algorithm, with a policy of many models, refined where it can be."""
    from shoal.algorithms import names
    from shoal.errors import ShoalError
    from shoal.refine import box_search

    data = random_table(8, 160, sensitive=2)
    policies = {
        "p": shoal.KAnonymity(3) & shoal.PSensitive(2, "illness"),
        "t": shoal.KAnonymity(3) & shoal.TCloseness(0.5, "illness") & shoal.TCloseness(0.6, "income"),
        "l": shoal.KAnonymity(3) & shoal.LDiversity(2.2, attribute="illness", variant="entropy"),
    }
    for name in names():
        for short, policy in policies.items():
            try:
                release = shoal.anonymize(data, policy, algorithm=name, refine=name == "mondrian" and 0.5, seed=2)
            except ShoalError as refusal:
                yield f"{name} {short}", str(refusal)
            else:
                yield f"{name} {short}", [digest(release.masked.write_csv().encode()), dict(release.manifest)]
    # Several workers at once: regions of box search, blocks of a clustering.
    box_search.REGION_RECORDS, box_search.REGION_CLASSES = 40, 5
    for name in ("k_member", "mdav"):
        release = shoal.anonymize(data, policies["p"], algorithm=name, refine=0.5, seed=2, blocks=40)
        yield f"{name} in blocks", [digest(release.masked.write_csv().encode()), dict(release.manifest)]


def store(folder: Path) -> Told:
    """Releases of a table that changes, and what their audit says."""
    from tests.evolve.store.registry import SCHEMA, make, people

    policy = shoal.KAnonymity(3) & shoal.LDiversity(3, "illness")
    schema = {**SCHEMA, "note": {"role": "identifier"}}
    for guard, more in (("batching", {}), ("m-invariance", {"m": 3})):
        kept = make(f"sqlite:///{folder}/{guard}.db", policy=policy, guard=guard, schema=schema, **more)
        for turn in range(3):
            masked = kept.release().masked
            yield f"{guard} {turn}", digest(masked.select(sorted(masked.columns)).sort(pl.all()).write_csv().encode())
            kept.apply(insert=people(60 + 5 * turn, 5), delete=list(range(3 * turn, 3 * turn + 3)))
        yield f"{guard} history", [[line["classes"], line["ncp"], line["waiting"]] for line in kept.history()]
        yield f"{guard} audit", kept.audit().to_dict()


def canary(folder: Path) -> Told:
    """What the libraries themselves make of some numbers; other machines differ in the last digits."""
    values = np.random.default_rng(3).random((64, 999)) + 0.1
    yield "blas", digest(values @ values[0])
    yield "numpy", digest(np.log(values) + np.exp(values))
    if platform.libc_ver()[0] == "glibc":
        yield "c library", digest(np.array([math.exp(x) * math.log(x) for x in values.ravel().tolist()]))


def plain_table() -> Microdata:
    """Numbers with many digits, and text, without taxonomies."""
    random = np.random.default_rng(11)
    n = 240
    frame = pl.DataFrame(
        {
            "weight": np.round(random.gamma(9.0, 8.3, n), 1),
            "height": np.round(random.normal(1.7, 0.1, n), 3),
            "town": [f"t{i}" for i in np.minimum(random.geometric(0.2, n), 13)],
            "illness": [f"i{i}" for i in random.integers(0, 6, n)],
        }
    )
    quasi = {name: {"role": "quasi"} for name in ("weight", "height", "town")}
    return Microdata.from_frame(frame, {**quasi, "illness": {"role": "sensitive"}})


def classes_of(data: Microdata, size: int) -> shoal.Partition:
    """Classes of about so many neighbours, without any algorithm."""
    order = np.lexsort(data.codes.T)
    labels = np.empty(data.n, dtype=np.int64)
    labels[order] = np.arange(data.n) // size
    return shoal.Partition.compact(labels)


def digest(content: Any) -> str:
    """A short name for many bytes."""
    return hashlib.sha256(
        content if isinstance(content, bytes) else np.ascontiguousarray(content).tobytes()
    ).hexdigest()


PARTS: dict[str, Callable[[Path], Told]] = {
    part.__name__: part for part in (demo, three_layer, measures, bound, algorithms, store, canary)
}


def main() -> None:
    folder, threads, *parts = sys.argv[1:]
    # The key of the manifest's commitment is random by intent: the one thing in which two runs may differ.
    secrets.token_bytes = lambda count=32: bytes(count)  # type: ignore[assignment]
    # Shoal takes as many workers as there are cores.
    os.cpu_count = lambda: int(threads)
    for part in parts:
        told = dict(PARTS[part](Path(folder)))
        print(json.dumps({part: told}, sort_keys=True, default=str))


if __name__ == "__main__":
    main()
