"""A release's own words held against it: every claim of its manifest, and the release made again from its secret half."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shoal.errors import InputError, VerificationError
from shoal.manifest import commitment
from shoal.microdata import Microdata
from shoal.policy import Policy
from shoal.release import file_digest
from shoal.road import anonymize
from shoal.verifier import Evidence


def read_half(path: Path) -> dict[str, Any]:
    """A manifest or a secret half; a sentence where the file is neither."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise InputError(f"'{path}' cannot be read as a manifest: {problem}.") from None
    if not isinstance(found, dict) or "output_sha256" not in found:
        raise InputError(f"'{path}' is no manifest of a release: it has no output_sha256.")
    return found


def broken_claims(told: Mapping[str, Any], masked: Path, evidence: Evidence, policy: Policy | None) -> Iterator[str]:
    """What a manifest says that is not so, in sentences. `evidence` is what the verifier found in the file."""
    if told["output_sha256"] != file_digest(masked):
        yield "The manifest belongs to another file: its output_sha256 is not that of this one."
    if policy is not None and told.get("policy") != policy.to_config():
        yield "The manifest names another policy than the configuration."
    found, claimed = evidence.to_dict(), told.get("evidence")
    if not isinstance(claimed, Mapping):
        yield "The manifest has no evidence."
        return
    for key in ("passed", "records", "classes", "smallest", "largest"):
        if claimed.get(key) != found[key]:
            yield f"The manifest says {key} = {claimed.get(key)!r} and the file says {found[key]!r}."
    if _checks(claimed) != _checks(found):
        yield "The manifest claims other checks, or other results, than the file gives."
    sizes = {"classes": found["classes"], "smallest_class": found["smallest"], "largest_class": found["largest"]}
    measures = told.get("measures")
    for key, value in sizes.items():
        if isinstance(measures, Mapping) and key in measures and measures[key] != value:
            yield f"The manifest says {key} = {measures[key]!r} and the file says {value!r}."


def _checks(evidence: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What is claimed of each rule; strength to nine digits, which is what arithmetic keeps."""
    listed = evidence.get("checks")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    return [(row.get("rule"), row.get("holds"), row.get("failing"), _short(row.get("strongest"))) for row in rows]


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def require_same(masked: Path, secret: Mapping[str, Any], data: Microdata, policy: Policy) -> None:
    """Make the release again from the original and its secret half; an error unless every byte is the same."""
    settings = secret.get("settings")
    if not isinstance(settings, Mapping) or "key" not in secret:
        raise InputError("The secret half has no settings or no key: it cannot be used to make the release again.")
    key = bytes.fromhex(str(secret["key"]))
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
