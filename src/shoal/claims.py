"""A release's own words held against it: every claim of its manifest, and the release made again from its secret half."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError, ShoalError, UnsupportedError, VerificationError
from shoal.io.written import Written, read_written
from shoal.manifest import BY_HEIGHTS, BY_SIZES, as_it_is, commitment, manifest_path
from shoal.microdata import Microdata
from shoal.persons import number_persons
from shoal.policy import Policy
from shoal.release import file_digest
from shoal.road import anonymize
from shoal.schema import Schema
from shoal.transform import declared
from shoal.verifier import Evidence, audited_column, derive_classes, masked_schema, published_quasi, verify
from shoal.verifier.examine import told_notes
from shoal.verifier.typed import pairs_of

OURS = frozenset(
    [
        "shoal",
        "policy",
        "settings",
        "transformations",
        "roles",
        "accepted",
        "measures",
        "evidence",
        "published_as_it_is",
    ]
) | {"output_sha256", "input_commitment"}
OF_STORES = frozenset(
    [
        "release",
        "store_version",
        "guard",
        "m",
        "waiting",
        "counterfeits",
        "counterfeits_by_class",
        "exposed",
        "undecided",
    ]
) | {"table_sha256"}
CHOICES = {
    "recode": ("generalize", "microaggregate", "suppress"),
    "intervals": ("text", "columns", "midpoint"),
    "order": ("shuffle", "keep"),
    "suppressed": ("mask", "drop"),
}


def read_half(path: Path) -> dict[str, Any]:
    """A manifest or a secret half; a sentence where the file is neither."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise InputError(f"'{path}' cannot be read as a manifest: {problem}.") from None
    if not isinstance(found, dict) or "output_sha256" not in found:
        raise InputError(f"'{path}' is no manifest of a release: it has no output_sha256.")
    return found


@dataclass(frozen=True, eq=False)
class Judged:
    """What a manifest is held against: a file as it was read, and what was found in it."""

    masked: Path
    written: Written
    evidence: Evidence
    policy: Policy | None
    declared: Schema
    """As the configuration has it."""
    schema: Schema
    """As the file has it: every column by its name."""

    @classmethod
    def of(cls, masked: Path, policy: Policy, declared: Schema) -> Judged:
        """A file that was not read yet, verified on the way."""
        written = read_written(masked, missing=declared.missing)
        schema = masked_schema(declared, written.kinds)
        found = verify(written.table, policy, schema, cells=written.cells, alike=written.alike)
        return cls(masked, written, found, policy, declared, schema)


def broken_claims(told: Mapping[str, Any], judged: Judged) -> Iterator[str]:
    """What a manifest says that is not so, in sentences.

    Everything that the file and the configuration tell is worked out again. What is left is bounded: three means of heights
    and how many cells were changed, which want the hierarchies of the original; `--secret` makes these again too.
    """
    if told["output_sha256"] != file_digest(judged.masked):
        yield "The manifest belongs to another file: its output_sha256 is not that of this one."
    if judged.policy is not None and told.get("policy") != judged.policy.to_config():
        yield "The manifest names another policy than the configuration."
    strange = sorted(set(told) - OURS - OF_STORES)
    if strange:
        yield f"The manifest holds what no release writes there ('{strange[0]}')."
    if not re.fullmatch("[0-9a-f]{64}", str(told.get("input_commitment", "0" * 64))):
        yield "The manifest's input_commitment is no commitment."
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+\S{0,20}", str(told.get("shoal"))):
        yield "The manifest does not say which version made it."
    yield from _declarations(told, judged)
    yield from _findings(told.get("published_as_it_is"), judged)
    found, claimed = judged.evidence.to_dict(), told.get("evidence")
    if not isinstance(claimed, Mapping):
        yield "The manifest has no evidence."
        return
    for key in ("passed", "records", "classes", "smallest", "largest", "persons", "problems", "violations"):
        if claimed.get(key) != found.get(key):
            yield f"The manifest says {key} = {claimed.get(key)!r} and the file says {found.get(key)!r}."
    if set(claimed) - set(found):
        yield "The manifest's evidence holds what no verifier says."
    if set(claimed.get("notes") or ()) - {*found["notes"], *_spelled(judged)}:
        yield "The manifest has notes that the file gives no reason for."
    if _checks(claimed) != _checks(found):
        yield "The manifest claims other checks, or other results, than the file gives."
    yield from _measures(told.get("measures"), told.get("settings"), judged)


def _spelled(judged: Judged) -> Iterator[str]:
    """What would be noted about the sensitive columns as they are written, spaces and all."""
    for name in judged.schema.named("sensitive"):
        try:
            yield from told_notes(audited_column(judged.written.cells, name, judged.schema))
        except ShoalError:
            continue


def _declarations(told: Mapping[str, Any], judged: Judged) -> Iterator[str]:
    """Roles, transformations, reasons and how values are written: what was decided before the data was looked at."""
    known = {**judged.declared.attributes, **judged.schema.attributes}
    known.pop("*", None)
    roles = told.get("roles")
    rest = "*" in judged.declared.attributes
    if not isinstance(roles, Mapping) or any(roles.get(name) != one.role for name, one in known.items()):
        yield "The manifest gives columns other roles than the configuration."
    elif not rest and not set(roles) <= set(known):
        yield "The manifest names columns that the configuration does not know."
    if told.get("transformations", {}) != {name: done for name, one in known.items() if (done := declared(one))}:
        yield "The manifest names other transformations than the configuration."
    if told.get("accepted", {}) != {name: one.accept for name, one in known.items() if one.accept is not None}:
        yield "The manifest gives other reasons for what was accepted than the configuration."
    settings = told.get("settings")
    if not isinstance(settings, Mapping) or any(settings[key] not in CHOICES.get(key, ()) for key in settings):
        yield "The manifest has settings that no release has."
    elif settings.get("intervals") != "columns" and any(pairs_of(judged.written.table.columns, judged.schema)):
        yield f"The manifest says intervals = {settings.get('intervals')!r}, and the file has them in columns."


def _findings(claimed: Any, judged: Judged) -> Iterator[str]:
    """What the columns that are published as they are tell; no finding of the file may be left out."""
    found = as_it_is(judged.written.table, judged.schema).to_dict()
    if not isinstance(claimed, Mapping) or set(claimed) != {"findings", "together"}:
        yield "The manifest does not say what the columns that are published as they are tell."
        return
    listed = {one.get("column"): one for one in claimed["findings"] if isinstance(one, Mapping)}
    for one in found["findings"]:
        same = listed.get(one["column"], {})
        if any(same.get(key) != one[key] for key in ("problem", "records", "of", "accepted", "refused", "role")):
            yield f"The manifest tells something else about the column '{one['column']}' than the file."
    together = claimed["together"] if isinstance(claimed["together"], Mapping) else {}
    if any(together.get(key) != value for key, value in found["together"].items()):
        yield "The manifest counts others as the only ones of their kind than the file has."


def _measures(claimed: Any, settings: Any, judged: Judged) -> Iterator[str]:
    """Sizes of classes and what follows from them; a suppressed record is in the class of stars and in none of the others."""
    if not isinstance(claimed, Mapping) or set(claimed) - {*BY_SIZES, *BY_HEIGHTS} or "classes" not in claimed:
        yield "The manifest's measures are not those of a release."
        return
    left_out = claimed.get("suppressed", 0)
    whole = isinstance(left_out, int) and left_out >= 0
    starred = left_out if whole and isinstance(settings, Mapping) and settings.get("suppressed") != "drop" else 0
    sizes = _without_stars(judged, starred)
    if "suppressed" not in claimed and claimed["classes"] != len(sizes or ()):
        # Where nobody is told how many were suppressed, they may be one class of the file more.
        sizes = _without_stars(judged, None)
    if sizes is None or not whole:
        yield f"The manifest says suppressed = {left_out!r}, and the file has no class of so many."
        return
    n = sum(sizes) + starred
    expected: dict[str, Any] = {"classes": len(sizes), "smallest_class": min(sizes, default=0)}
    expected |= {"largest_class": max(sizes, default=0), "dm": float(sum(size * size for size in sizes) + n * starred)}
    for key, value in expected.items():
        if key in claimed and claimed[key] != value:
            yield f"The manifest says {key} = {claimed[key]!r} and the file says {value!r}."
    for key in (key for key in BY_HEIGHTS if claimed.get(key) is not None):
        if not isinstance(claimed[key], int | float) or not 0 <= claimed[key] <= 1:
            yield f"The manifest says {key} = {claimed[key]!r}, which is no share."
    cells = n * len(judged.schema.named("quasi"))
    if not isinstance(claimed.get("changed", 0), int) or not 0 <= claimed.get("changed", 0) <= cells:
        yield f"The manifest says changed = {claimed['changed']!r}, and the file has {cells} cells."
    average = claimed.get("avg")
    if average is not None and not _of_some_k(
        average, n / max(1, len(sizes) + (starred > 0)), judged.evidence.smallest
    ):
        yield f"The manifest says avg = {average!r}, and no k of the file gives that."


def _of_some_k(average: Any, mean: float, most: int) -> bool:
    """Whether a mean size of classes over k is of a whole k that the classes have."""
    if not isinstance(average, int | float) or average <= 0:
        return False
    k = round(mean / average)
    return 1 <= k <= most and math.isclose(k * average, mean, rel_tol=1e-9)


def _without_stars(judged: Judged, starred: int | None) -> list[int] | None:
    """The sizes of the classes, in persons where their tokens are there, without so many suppressed, or all of them (None).

    Nothing where there are fewer.
    """
    cells, quasi = judged.written.cells, published_quasi(judged.written.table, judged.schema)
    labels, groups = derive_classes(cells, quasi)
    person = judged.schema.person
    if person is not None and person in cells.columns:
        labels = labels[number_persons(cells[person]).first]
    sizes: list[int] = np.bincount(labels, minlength=groups.height).tolist()
    if starred == 0:
        return sizes
    whole = [number for number, row in enumerate(groups.rows()) if all(cell in ("*", None, "") for cell in row)]
    # Rows without any value look like suppressed ones: the class of just so many is theirs, if there is one.
    for number in sorted(whole, key=lambda number: sizes[number] != starred):
        if starred is None or sizes[number] >= starred:
            sizes[number] -= sizes[number] if starred is None else starred
            return [size for size in sizes if size]
    return None


def _checks(evidence: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What is claimed of each rule; strength to nine digits, which is what arithmetic keeps."""
    listed = evidence.get("checks")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    return [tuple((key, _short(value)) for key, value in sorted(row.items())) for row in rows]


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def require_same(
    masked: Path, secret: Mapping[str, Any], data: Microdata, policy: Policy, manifest: Mapping[str, Any] | None = None
) -> None:
    """Make the release again from the original and its secret half; an error unless every byte is the same.

    `manifest` is compared too, where it is given.
    """
    settings = secret.get("settings")
    if not isinstance(settings, Mapping) or "key" not in secret:
        raise InputError("The secret half has no settings or no key: it cannot be used to make the release again.")
    if settings.get("engine", "memory") != "memory":
        raise UnsupportedError(
            f"The release was made by the engine {settings['engine']}, whose rows have an order of their own; make it again "
            "with shoal anonymize and the same seed, and compare the two files."
        )
    try:
        key = bytes.fromhex(str(secret["key"]))
    except ValueError:
        raise InputError(
            "The secret half has a key that is none: it cannot be used to make the release again."
        ) from None
    if secret.get("output_sha256") != file_digest(masked):
        raise VerificationError("The secret half belongs to another file: its output_sha256 is not that of this one.")
    if commitment(data.frame, key) != secret.get("input_commitment"):
        raise VerificationError(
            "The table is not the one that the release was made from: the commitment does not open."
        )
    known = {name: value for name, value in settings.items() if name not in ("options", "refined")}
    options = {name: value for name, value in dict(settings.get("options", {})).items() if name != "refined"}
    release = anonymize(data, policy, **known, **options)
    with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
        again = release.write(Path(folder) / masked.name, key=key)
        if hashlib.sha256(again.read_bytes()).digest() != hashlib.sha256(masked.read_bytes()).digest():
            raise VerificationError(f"The release was made again and '{masked}' is not the same, byte for byte.")
        if manifest is not None and read_half(manifest_path(again)) != manifest:
            raise VerificationError("The release was made again, and its manifest says something else.")
