"""What a release tells about itself, and what stays with its owner.

The *manifest* is published beside the masked table. Rule: everything in it is either decided before the data is looked at
(version, policy, roles, how values are written) or a function of the masked table and of what was declared. Whoever has the
masked table could have computed it, so it adds nothing to what that table says. In particular:

- The evidence is computed by the verifier from the masked table alone.
- Of the losses only those are told that follow from class sizes (`dm`, `avg`, `classes`, …), or from the height of published
  values in declared taxonomies and the width of published intervals against the published range (`nil`, `distortion`,
  `precision`), to two decimals. The others know the original: `sse` has the square of every hidden number in it (with all but
  one of them known, the last is a root of it), `ncp` and `granularity` count values below a node of which the table shows only
  the node, and the losses of algorithms that were not used describe classes that nobody sees.
- The original is named by a commitment only: HMAC-SHA256 of its content under a random key that stays with the owner. Without
  the key it is a random number; a plain digest would let anybody test guesses of the whole table, one unknown row at a time.
- Means and midpoints show neither how wide a class was nor whether two classes came to the same values. Where they are published,
  only the sizes of the classes that the table shows are told.
- How many records were left out is not told; where some were, neither are the losses that count them.
- Columns that are published as they are, are examined once more in the masked table, for what each tells by itself. What it tells
  beside an exact quasi-identifier (that it determines the age in 97 of 100 cases, say) is said to the owner alone. A reason
  that accepts a column is written before the data is looked at, and stands here whatever was found.
- Where rows are people's and no token is published, nobody can see whose a row is. Then the evidence counts rows, as the
  verifier does with the file, and of the losses only the number of classes is told: sizes in persons know the original.

Proof, entry by entry, that two originals with one masked table and one configuration have one manifest. `shoal`, `policy`,
`settings`, `transformations`, `roles` and `accepted` do not depend on the table. `evidence` and `published_as_it_is` are
functions (`verify`, `examine`) of the masked table and the schema; who has which token stands in the masked table. `measures` are
counts of classes and of their members, which it shows too, and sums over published values. `output_sha256` is of the published
bytes. `input_commitment` is a random number to whoever lacks its key. `tests/test_manifest.py` makes such pairs of originals.

The *secret half* (`masked.csv.secret.json`, readable by its owner only) has the rest: the key, the seed and every setting, all
losses and notes, and what the labels of automatic groups stand for. With it and the original, `shoal verify --secret` makes the
release again and compares it byte for byte.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from shoal.declaration import Examination, examine
from shoal.io.delimited import SPACES
from shoal.io.fingerprint import fingerprint
from shoal.io.frames import apply_missing
from shoal.io.lean import by_text
from shoal.measures.loss import Measures
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.schema import Schema
from shoal.space import Tree
from shoal.transform import declared
from shoal.verifier import Evidence, verify
from shoal.version import VERSION

BY_SIZES = ("classes", "smallest_class", "largest_class", "suppressed", "dm", "avg", "changed")
BY_HEIGHTS = ("nil", "distortion", "precision")
BY_ITSELF = ("identifier", "separates")
SHOWN_SETTINGS = ("recode", "intervals", "order", "suppressed")


def manifest_path(target: Path) -> Path:
    """Where a release's manifest lies: masked.csv → masked.csv.manifest.json."""
    return target.with_name(target.name + ".manifest.json")


def secret_path(target: Path) -> Path:
    """Where the owner's half lies: masked.csv → masked.csv.secret.json."""
    return target.with_name(target.name + ".secret.json")


def published_half(
    masked: pl.DataFrame,
    data: Microdata,
    policy: Policy,
    evidence: Evidence,
    measures: Measures,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The manifest. No time, no raw value, no figure that the masked table does not give."""
    unseen = data.persons is not None and data.schema.token is None
    if unseen:
        evidence = verify(masked, policy, data.schema)
    return published_entries(as_it_is(masked, data.schema), data, policy, evidence, measures, settings)


def published_entries(
    found: Examination,
    data: Microdata,
    policy: Policy,
    evidence: Evidence,
    measures: Measures,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The manifest of a masked table in which this was `found`, about columns that are published as they are."""
    unseen = data.persons is not None and data.schema.token is None
    told = published_measures(measures, left_out=settings.get("suppressed") == "drop")
    if settings.get("recode") == "microaggregate" or settings.get("intervals") == "midpoint":
        sizes = (evidence.classes, evidence.smallest, evidence.largest)
        told = dict(zip(("classes", "smallest_class", "largest_class"), sizes, strict=True))
    return {
        "shoal": VERSION,
        "policy": policy.to_config(),
        "settings": {key: settings[key] for key in SHOWN_SETTINGS if key in settings},
        "transformations": {name: done for name, one in data.schema.attributes.items() if (done := declared(one))},
        "roles": {name: attribute.role for name, attribute in data.schema.attributes.items()},
        "accepted": {name: one.accept for name, one in data.schema.attributes.items() if one.accept is not None},
        "measures": {"classes": told["classes"]} if unseen else told,
        "evidence": {**evidence.to_dict(), "violations": []},
        "published_as_it_is": found.to_dict(),
    }


def as_it_is(masked: pl.DataFrame, schema: Schema) -> Examination:
    """What columns that are published as they are tell by themselves; beside masked values they tell nothing new.

    Spaces around a text are dropped by whoever reads a text file, and are nothing that tells two records apart.
    """
    # Only these are asked what they tell by themselves; copies of the masked ones would be as large as the table.

    def read(column: pl.Series) -> pl.Series:
        stripped = column.str.strip_chars(SPACES) if column.dtype == pl.String else column
        return apply_missing(stripped.to_frame(), schema.missing).to_series()

    plain = [name for name in masked.columns if name not in schema.named("quasi")]
    return by_itself(examine(masked.with_columns(by_text(masked[name], read) for name in plain), schema))


def by_itself(found: Examination) -> Examination:
    """What a masked table tells without the original."""
    return replace(found, findings=tuple(one for one in found.findings if one.problem in BY_ITSELF))


def published_measures(measures: Measures, *, left_out: bool = False) -> dict[str, Any]:
    """The losses that anybody can compute from the masked table, by the rule of this page; `left_out`: some records were."""
    told = measures.to_dict()
    if left_out and measures.suppressed:
        return {name: told[name] for name in ("classes", "smallest_class", "largest_class")}
    return {
        **{name: told[name] for name in BY_SIZES},
        **{name: None if told[name] is None else round(told[name], 2) for name in BY_HEIGHTS},
    }


def secret_half(
    data: Microdata,
    measures: Measures,
    settings: Mapping[str, Any],
    notes: Mapping[str, Any],
    found: Examination,
    records: int | None = None,
) -> dict[str, Any]:
    """What the owner keeps, with what was `found` about columns of the original; the key is added when the release is written.

    `records` is how many the table has, where `data` has none of them.
    """
    return {
        "shoal": VERSION,
        "settings": dict(settings),
        "input_records": data.n + data.dropped if records is None else records,
        "dropped_for_missing": data.dropped,
        "measures": measures.to_dict(),
        "notes": dict(notes),
        "published_as_it_is": found.to_dict(),
        "groups": _groups(data),
    }


def halves(
    manifest: Mapping[str, Any], secret: Mapping[str, Any], key: bytes, named: Mapping[str, str]
) -> tuple[bytes, bytes]:
    """Both halves as their files hold them: with what is `named` when the table is written, and the key with its owner."""
    both = {**manifest, **named}, {**secret, "key": key.hex(), **named}
    texts = (json.dumps(one, indent=2, ensure_ascii=False, sort_keys=True, default=str) for one in both)
    public, private = (f"{text}\n".encode() for text in texts)
    return public, private


def _groups(data: Microdata) -> dict[str, dict[str, list[str]]]:
    """The values that each label of an automatic taxonomy stands for. They name what occurs in the table, so they stay here."""
    trees = {
        name: domain.taxonomy
        for name, domain in zip(data.quasi, data.domains, strict=True)
        if isinstance(domain, Tree) and data.schema.attributes[name].taxonomy == "auto"
    }
    return {
        name: {
            tree.labels[node]: [label for label in tree.labels[tree.first[node] : tree.last[node] + 1] if label]
            for node in range(tree.leaves, tree.root)
        }
        for name, tree in trees.items()
    }


def commitment(frame: pl.DataFrame | Microdata, key: bytes) -> str:
    """Binds a release to the original without telling anything about it to whoever does not have the key."""
    digest = frame.fingerprint if isinstance(frame, Microdata) else fingerprint(frame)
    return hmac.new(key, digest, hashlib.sha256).hexdigest()
